# SPDX-License-Identifier: MIT
# cmake --install build [--prefix DIR]: headers, both libraries, the program, its manual page and
# shell completion, models and experiments, and the files by which other builds find us.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/opc)

install(TARGETS opc_shared opc_static opc_program EXPORT opc-targets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/opc ${PROJECT_BINARY_DIR}/include/opc
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(CODE "set(OPC_DOCS \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}\")
include(\"${PROJECT_SOURCE_DIR}/cmake/installed_docs.cmake\")")
foreach(folder models experiments python)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${folder})
        install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/opc
                PATTERN "__pycache__" EXCLUDE PATTERN "pyproject.toml" EXCLUDE)
    endif()
endforeach()
# Published learning curves, which figures are drawn with (experiments/paper/fig3.yaml).
install(DIRECTORY results/published DESTINATION ${CMAKE_INSTALL_DATADIR}/opc/results)
# pip install ./python (python/pyproject.toml): the library alone, beside the package that loads it.
if(SKBUILD)
    install(FILES $<TARGET_FILE:opc_shared> RENAME $<TARGET_SONAME_FILE_NAME:opc_shared>
            DESTINATION opc COMPONENT python)
endif()
if(NOT CMAKE_CROSSCOMPILING)
    install(FILES ${PROJECT_BINARY_DIR}/opc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${PROJECT_BINARY_DIR}/opc.bash RENAME opc
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
    install(FILES ${PROJECT_BINARY_DIR}/opc.zsh RENAME _opc
            DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
    install(FILES ${PROJECT_BINARY_DIR}/opc.fish
            DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

add_custom_target(uninstall VERBATIM
    COMMAND ${CMAKE_COMMAND} -D OPC_MANIFEST=${PROJECT_BINARY_DIR}/install_manifest.txt
            -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake)

# pkg-config. What libopc.a needs besides is listed and not required as modules: those would hand
# their include folders to everyone who asks for ours.
list(TRANSFORM OPC_LIBS PREPEND -l OUTPUT_VARIABLE pc_libs)
list(JOIN pc_libs " " pc_libs)
if(OPC_WITH_BULLET)
    string(APPEND pc_libs " -lstdc++")
endif()
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE pc_up)
configure_file(cmake/opc.pc.in opc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/opc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(opc): opc::opc is the shared library, opc::static the archive.
install(EXPORT opc-targets NAMESPACE opc:: DESTINATION ${package_dir})
file(WRITE ${PROJECT_BINARY_DIR}/opc-config.cmake
     "include(CMakeFindDependencyMacro)\nfind_dependency(Threads)\n"
     "include(\${CMAKE_CURRENT_LIST_DIR}/opc-targets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/opc-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/opc-config.cmake ${PROJECT_BINARY_DIR}/opc-config-version.cmake
        DESTINATION ${package_dir})
