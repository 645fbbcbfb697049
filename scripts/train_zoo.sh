#!/bin/sh
# Train and pack the zoo's access-point selector, four digit classifiers of one architecture (ordinary, pruned, hardened,
# pruned and hardened), clones of its hopper with ever fewer weights, and two forecasters of rain (these on a GPU).
set -eu
fewer=${FEWER:-.venv/bin/fewer}
runs=${1:-runs/zoo}
"$fewer" train cellfree --preset distilled --prune auto --sparsity 0.8 --threads 1 --out "$runs/cellfree-80"
"$fewer" pack "$runs/cellfree-80" -o src/fewer/zoo/cellfree-80.pack
"$fewer" train vision --set network=cnn1 --threads 1 --out "$runs/digits-dense"
"$fewer" pack "$runs/digits-dense" -o src/fewer/zoo/digits-dense.pack
digits() {  # name, then what prunes and hardens it
  name=$1
  shift
  "$fewer" train vision --set network=cnn1 --threads 1 "$@" --out "$runs/$name"
  "$fewer" pack "$runs/$name" --values float16 -o "src/fewer/zoo/$name.pack"
}
digits digits-pruned --prune lamp,when=gradual --sparsity 0.9
digits digits-hardened --harden pgd:0.3,steps=4 --steps 1400 --batch 64 \
  --optimizer adam,lr=3e-3,warmup=50,decay_from=0.4
# from the hardened one, pruned while it is hardened on
digits digits-pruned-hardened --from "$runs/digits-hardened" --harden pgd:0.3,steps=4,ramp=0 \
  --prune lamp,when=gradual --sparsity 0.9 --steps 1000 --batch 64 --optimizer adam,lr=3e-3,warmup=20,decay_from=0.5
"${PYTHON:-.venv/bin/python}" scripts/audit_packs.py digits-dense digits-pruned digits-hardened digits-pruned-hardened
clone() {  # name, then what prunes it
  name=$1
  shift
  "$fewer" train control --set environment=hopper --set algorithm=plain-bc --set hidden=256,256 --set transitions=50000 \
    --steps 8000 --batch 256 --optimizer adam,lr=3e-3,decay_from=0.3 --threads 1 "$@" --out "$runs/$name"
  "$fewer" pack "$runs/$name" --values float16 -o "src/fewer/zoo/$name.pack"
}
clone control-hopper-dense
clone control-hopper-95 --prune snip --sparsity 0.95
clone control-hopper-99 --prune snip --sparsity 0.99
# on a GPU: minutes there, hours on a CPU
rain() {  # name, then what differs
  name=$1
  shift
  "$fewer" train nowcast --set size=84 --set augment=true --set train_windows=5000 --set validation_windows=140 \
    --set test_windows=560 --set weather_device=cuda --set positive_weight=4.5 --batch 8 --steps 7000 --device cuda \
    --optimizer adamw,weight_decay=2e-2,clip_value=2.0,decay_from=0.3,lr=2e-3,warmup=200 "$@" --out "$runs/$name"
  "$fewer" pack "$runs/$name" --values float16 -o "src/fewer/zoo/$name.pack"
}
rain nowcast-80 --set width=16 --prune lamp,when=gradual,samples=16 --sparsity 0.8
rain nowcast-90 --set width=20 --prune lamp,when=gradual,samples=16 --sparsity 0.9
