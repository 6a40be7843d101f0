#!/bin/sh
# SPDX-License-Identifier: MIT
# The library that draws the curves of opc serve is the one that was published: nobody has edited it here.
set -eu
cd "$SRC/src/web/uplot"
sha256sum -c SHA256SUMS
