#!/usr/bin/env bash
# Measures files of bench/results again, each with its command. The machine should be quiet, and everything committed.
#
# Usage: measure.sh NAME...     the stem of a file, such as network_resnet34
#        measure.sh --list      all that it can measure, with the command and about how long it takes
#
# A file is replaced when its command has succeeded. Adaptations, layers and coverage go on where they were interrupted, if
# build/ is still there. Then write the pages anew (CONTRIBUTING.md, Results in pages).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
use_venv
RESULTS=bench/results
RIVALS=eager,inductor,onnxruntime,openvino
ALL=eager,channels-last,inductor,onnxruntime,onnxruntime-int8,openvino,openvino-default,openvino-int8,syno,syno-cpp,syno-cpp-bf16,syno-cpp-int8
TEACHER="--model resnet18-small --model-option width=24 --weights examples/teachers/resnet18-small-24-cifar10.safetensors"
FOUND="$(printf '%s,' examples/found/*.txt)"

# Of each file: minutes on two cores, and the command, which prints the file.
declare -A MINUTES=(
  [network_engines]=5 [network_teacher]=3 [network_resnet18_batch8]=10 [network_resnet34]=12 [network_resnext]=10 [network_resnet_small]=4
  [network_resnet18_operators]=25 [demo]=5 [training_resnet_small]=10 [training_resnet18]=15
  [kernels_zoo]=60 [adaptation_resnet18]=75 [adaptation_rivals]=120 [adaptation_int8]=40
)
declare -A COMMAND=(
  [network_engines]="syno bench network --model resnet18 --binding g=4,s=2 --engines $ALL --picture docs/images/engines.png --json"
  [network_teacher]="syno bench network $TEACHER --size 32 --operators none --threads 1 --data cifar10 --images 5000 --rounds 60 --engines $ALL,syno-cpp-auto --json"
  [network_resnet18_batch8]="syno bench network --model resnet18 --binding g=4,s=2 --batch 8 --engines $ALL --json"
  [network_resnet34]="syno bench network --model resnet34 --binding g=4,s=2 --engines $ALL --json"
  [network_resnext]="syno bench network --model resnext29_2x64d --operators none,operator-1 --binding g=4,s=2 --engines $ALL --json"
  [network_resnet_small]="syno bench network --model resnet-small --size 32 --operators none,operator-1 --binding g=4,s=2 --engines $ALL --json"
  [network_resnet18_operators]="syno bench network --model resnet18 --binding m=2,q=4,k=3 --threads 1 --engines $RIVALS,syno-cpp --operators none,operator-1,operator-2,stacked-conv,depthwise-separable,low-rank-conv,${FOUND%,} --json"
  [demo]="syno demo --out build/demo --json"
  [training_resnet_small]="syno bench training --model resnet-small --size 16 --operators operator-1 --sampled 30 --json"
  [training_resnet18]="syno bench training --model resnet18 --size 64 --operators operator-1 --sampled 30 --json"
  [kernels_zoo]="syno bench kernels --operators zoo --sampled 30 --forms none --threads 1 --batch 1 --tune 12 --picture docs/images/kernels.png --json"
  [adaptation_resnet18]="syno adapt $TEACHER --data cifar10 --precision bfloat16 --engine syno --latency 0.75x --latency 0.5x --latency 0.35x --latency 0.25x --hours 1 --final --picture docs/images/adaptation-resnet18.png --engines $RIVALS,openvino-default,syno,syno-cpp --store build/adaptation.db --name resnet18 --json"
  [adaptation_int8]="syno adapt $TEACHER --data cifar10 --precision bfloat16 --engine syno-cpp-int8 --latency 0.65x --latency 0.45x --hours 0.5 --final --engines onnxruntime-int8,openvino-int8,openvino-default,syno-cpp,syno-cpp-int8 --store build/adaptation.db --name int8 --json"
  [adaptation_rivals]="syno adapt $TEACHER --data cifar10 --precision bfloat16 --engine syno --latency 0.35x --epochs 1 --rivals --final --max-drop 1.5 --store build/adaptation.db --name rivals --json"
)
# These write their file themselves.
MINUTES[layers_resnet18]=120 MINUTES[call_overhead]=5 MINUTES[coverage]=60 MINUTES[network_formats]=25
MINUTES[networks]=100 MINUTES[network_steps]=5
COMMAND[layers_resnet18]="syno bench layers --model resnet18 --operators operator-1,operator-2,stacked-conv,nas-pte-1 --threads 1 --engines $RIVALS,syno-cpp --tvm 64x56,256x14 --trials 64 --out build/measured/layers_resnet18.json"
COMMAND[network_formats]="syno bench engines --networks resnet18,resnet50,mobilenet_v2,mobilenet_v3_small,efficientnet_b0,mobilenetv4_conv_small,regnetx_004,deit_tiny_patch16_224 --engines openvino,openvino-default,openvino-int8,syno-cpp,syno-cpp-bf16,syno-cpp-int8,syno-cpp-auto --batches 1 --threads 2 --passes 1 --out build/measured/network_formats.json"
COMMAND[networks]="syno bench engines --passes 1 --out build/measured/networks.json"
COMMAND[network_steps]="python bench/network_steps.py --out build/measured/network_steps.json"
COMMAND[coverage]="syno bench coverage --out build/measured/coverage.json"
COMMAND[call_overhead]="python bench/call_overhead.py --out build/measured/call_overhead.json"

if [ "${1:-}" = --list ]; then
  for name in $(printf '%s\n' "${!COMMAND[@]}" | sort); do
    printf '%s (about %d minutes)\n  %s\n' "$name" "${MINUTES[$name]}" "${COMMAND[$name]}"
  done
  exit
fi
[ $# -gt 0 ] || die "nothing to measure
  what to do: \`tools/measure.sh --list\` names what there is"
for name in "$@"; do
  [ -n "${COMMAND[$name]:-}" ] || die "no command is known for '$name'
  what to do: \`tools/measure.sh --list\` names what there is"
done
mkdir -p build/measured
for name in "$@"; do
  made="build/measured/$name.json"
  say "$name: ${COMMAND[$name]}"
  # A command that measured everything may still say no, such as a search whose best operator is none.
  code=0
  if [[ "${COMMAND[$name]}" == *"--out $made" ]]; then
    ${COMMAND[$name]} || code=$? # goes on with a file that was interrupted
  else
    ${COMMAND[$name]} >"$made" || code=$?
  fi
  [ "$code" -le 1 ] && [ -s "$made" ] || die "'$name' ended with exit code $code; $RESULTS/$name.json is as before"
  mv "$made" "$RESULTS/$name.json"
done
python tools/check_results.py
