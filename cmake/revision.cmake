# SPDX-License-Identifier: MIT
# Writes OUT, a C file with the commit of SOURCE: "" outside a clone, "-dirty" behind it where files
# are changed. Runs with every build and touches OUT only when it says something else.
cmake_minimum_required(VERSION 3.25)
set(revision "")
find_program(git git)
if(git AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${git} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                    OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
    "#include \"base/revision.h\"\nconst char opc_revision[] = \"@revision@\";\n")
