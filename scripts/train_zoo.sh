#!/bin/sh
# Train and pack the zoo's access-point selector and its ordinary (dense, not hardened) digit classifier; minutes each.
set -eu
fewer=${FEWER:-.venv/bin/fewer}
runs=${1:-runs/zoo}
"$fewer" train cellfree --prune magnitude,when=gradual --sparsity 0.8 --threads 1 --out "$runs/cellfree-80"
"$fewer" pack "$runs/cellfree-80" -o src/fewer/zoo/cellfree-80.pack
"$fewer" train vision --set network=cnn1 --threads 1 --out "$runs/digits-dense"
"$fewer" pack "$runs/digits-dense" -o src/fewer/zoo/digits-dense.pack
