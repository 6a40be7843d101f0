# SPDX-License-Identifier: MIT
# cmake -D OUT=assets.c -D ROOT=models -D FILES=* -D TABLE=opc_assets -D HEADER=env/assets.h
#       -P embed.cmake
# Writes the files below ROOT that match FILES as C arrays, and a table of them, which HEADER
# declares; src/env/assets.h says what is in one.
file(GLOB_RECURSE names RELATIVE ${ROOT} ${ROOT}/${FILES})
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
file(WRITE ${OUT} "/* Made by cmake/embed.cmake. */\n#include \"${HEADER}\"\n${arrays}
const struct opc_asset ${TABLE}[] = {\n${table}    {0, 0, 0},\n};\n")
