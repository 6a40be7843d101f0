# SPDX-License-Identifier: MIT
# cmake -D OUT=assets.c -D ROOT=models -P embed.cmake
# Writes the files below ROOT as C arrays; src/env/assets.h declares the table and says more.
file(GLOB_RECURSE names RELATIVE ${ROOT} ${ROOT}/*)
list(SORT names)
set(arrays "")
set(table "")
set(i 0)
foreach(name IN LISTS names)
    file(SIZE ${ROOT}/${name} size)
    file(READ ${ROOT}/${name} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
           bytes "${bytes}")
    string(APPEND arrays "\nstatic const unsigned char data${i}[] = {\n${bytes}0};\n")
    string(APPEND table "    {\"${name}\", data${i}, ${size}},\n")
    math(EXPR i "${i} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by cmake/embed.cmake from models/. */\n#include \"env/assets.h\"\n${arrays}
const struct opc_asset opc_assets[] = {\n${table}    {0, 0, 0},\n};\n")
