#!/usr/bin/env bash
# The steps of the paper at small scale, from a search to the figures, in build/reproduce.
#
# Usage: reproduce_small.sh [OUT]
#   SCALE=tiny     minutes instead of an hour, on images of digits: only to try the steps
#   SYNO_DATA      folder of the data sets; without CIFAR-10, the digits of scikit-learn are taken
#
# A step whose file is there is skipped, and an interrupted one goes on: start the script again.
# A step that fails is named at the end, and the others are done.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
if [ -z "${SYNO_IS_SET_UP:-}" ]; then
  tools/venv.sh
  tools/build.sh release _core
fi
use_venv
OUT="$(realpath -m "${1:-build/reproduce}")"
SCALE="${SCALE:-small}"
THREADS="$(( JOBS < 2 ? JOBS : 2 ))"
mkdir -p "$OUT"
STORE="$OUT/runs.db"
FAILED=()

has_data() { syno data list --json | grep -q "\"$1\""; }

# step NAME FILE COMMAND...: what the command prints becomes FILE in one move.
step() {
  local name="$1" file="$OUT/$2" code=0 began=$SECONDS
  shift 2
  if [ -e "$file" ]; then
    say "$name: done before"
    return
  fi
  say "$name: $*"
  "$@" >"$file.part" || code=$?
  printf '%s\t%d\t%d\n' "$name" "$((SECONDS - began))" "$code" >>"$OUT/seconds.tsv"
  case "$code" in
    0) mv "$file.part" "$file" ;;
    130 | 143) die "interrupted in '$name'; the same command goes on" ;;
    *) FAILED+=("$name (exit code $code)") ;;
  esac
}

# search NAME OPTION...: a new study, or the rest of one that was interrupted.
search() {
  local name="$1"
  shift
  if syno status --store "$STORE" --study "$name" >"$OUT/status.txt" 2>&1; then
    syno resume --store "$STORE" --study "$name" --json
  else
    syno search --store "$STORE" --name "$name" "$@" --json
  fi
}

select_operators() {
  rm -rf "$OUT/selected"
  syno select --store "$STORE" --study search --diverse --top "$SELECTED" --out "$OUT/selected" --json
}

if [ "$SCALE" = tiny ]; then
  DATA=digits TRAIN=(--images 300 --epochs 2 --resolution 8) EVALUATIONS=3 SELECTED=1 SEEDS=1
  WORDS=(--steps 4 --context 16 --batch 2 --rounds 2) SAMPLES=200 TRIALS=500 ROUNDS=20 SCHEDULES=2
  NETWORK=(--model resnet-small --size 32 --operators none,operator-1 --binding g=8,s=2)
  LAYERS=(--model resnet-small --size 32 --layers 64x8 --binding g=8,s=2
    --operators operator-1,nas-pte-1 --engines eager,syno-cpp)
else
  DATA=digits TRAIN=(--fidelity digits) EVALUATIONS=12 SELECTED=2 SEEDS=2
  if has_data cifar10; then DATA=cifar10 TRAIN=(--fidelity tiny); fi
  WORDS=(--steps 150) SAMPLES=6452 TRIALS=50000 ROUNDS=30 SCHEDULES=16
  NETWORK=(--model resnet18 --operators none,operator-1,operator-2)
  LAYERS=(--model resnet34 --layers 64x56,128x28,256x14,512x7)
fi
# Without a text at hand, the pages of the project are one.
TEXT=tinyshakespeare
has_data "$TEXT" || TEXT="$ROOT/docs"

# Searching, and cherry-picking operators.
step "search" search.json search search --data "$DATA" "${TRAIN[@]}" --max-nodes 20000 \
  --evaluations "$EVALUATIONS" --seconds 900 --threads "$THREADS"
step "selection" selected.json select_operators
# Reevaluation, with the baselines: the original, stacked convolution and INT8.
step "reevaluation" case-study.json syno train "$OUT/selected" operator-1 stacked-conv --baseline \
  --quantize --binding g=8,s=2 --data "$DATA" "${TRAIN[@]}" --seeds "$SEEDS" --store "$STORE" \
  --name reevaluation --checkpoints "$OUT/checkpoints" --threads "$THREADS" --json
step "language model" projection-summary.json syno experiment projection --data "$TEXT" \
  "${WORDS[@]}" --seeds 1 --threads "$THREADS" --out "$OUT/projection.json" --json
# Performance tuning, of one layer, and of whole networks and layers in several engines.
step "tuning" tuned.json syno tune operator-1 --layer 64x56 --back-ends eager,inductor,cpp \
  --trials "$SCHEDULES" --rounds "$ROUNDS" --threads "$THREADS" --out "$OUT/tuned" --json
step "networks" network.json syno bench network "${NETWORK[@]}" --rounds "$ROUNDS" \
  --threads "$THREADS" --json
step "layers" layers-summary.json syno bench layers "${LAYERS[@]}" --rounds "$ROUNDS" \
  --threads "$THREADS" --out "$OUT/layers.json" --json
# Ablations.
step "canonical rate" canonical-rate.json syno experiment canonical-rate --preset paper/resnet18 \
  --samples "$SAMPLES" --picture "$OUT/canonical-rate.png" --json
step "distance ablation" distance-ablation.json syno experiment distance-ablation \
  --preset paper/resnet18 --trials "$TRIALS" --picture "$OUT/distance-ablation.png" --json
# Plots: drawn anew each time, from what is there.
RESULTS=()
for file in case-study projection network layers canonical-rate distance-ablation; do
  [ ! -e "$OUT/$file.json" ] || RESULTS+=(--results "$OUT/$file.json")
done
syno report --figures "$OUT/figures" "${RESULTS[@]}" --store "$STORE"
syno report --store "$STORE" --study search --out "$OUT/report.html"
say "seconds of each step: $OUT/seconds.tsv"
[ ${#FAILED[@]} -eq 0 ] || die "these steps failed: $(IFS=,; echo "${FAILED[*]}")"
