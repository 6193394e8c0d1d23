# zlib, libzip, libpng and libjpeg for src/io: found here when netcl is built, and again by the installed package, because
# whoever links a static library links what it uses. Each becomes a target netcl::file_<library>.
function(netcl_find_file_library name header library package)
  find_path(NETCL_${name}_HEADERS ${header})
  find_library(NETCL_${name}_LIBRARY ${library})
  mark_as_advanced(NETCL_${name}_HEADERS NETCL_${name}_LIBRARY)
  if(NOT NETCL_${name}_HEADERS OR NOT NETCL_${name}_LIBRARY)
    message(FATAL_ERROR "netcl: ${header} or the library ${library} was not found. "
      "Install it (Debian: apt-get install ${package}).")
  endif()
  if(NOT TARGET netcl::file_${library})
    add_library(netcl::file_${library} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(netcl::file_${library} PROPERTIES IMPORTED_LOCATION "${NETCL_${name}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${NETCL_${name}_HEADERS}")
  endif()
endfunction()
netcl_find_file_library(ZLIB zlib.h z zlib1g-dev)
netcl_find_file_library(LIBZIP zip.h zip libzip-dev)
netcl_find_file_library(PNG png.h png libpng-dev)
netcl_find_file_library(JPEG jpeglib.h jpeg libjpeg62-turbo-dev)
set(netcl_file_libraries netcl::file_zip netcl::file_png netcl::file_jpeg netcl::file_z)
