// What an emitted C++ kernel does, phase by phase, in numbers: what a model of its latency reads.
#pragma once

#include <string>

#include "syno/plan/plan.h"

namespace syno {

struct CppOptions;

/// The phases that `run` of the emitted kernel has for one image, as a JSON object. Phases on weights alone, which `pack`
/// runs once a model, are left out.
///
///   batch                       images of a call: the extent of the free dimension, or 1
///   input, output, weights      elements, those of one image
///   phases                      a list of objects:
///     stored                    elements that the phase stores
///     product                   the phase as a matrix product, or null:
///       rows, columns, terms, taps, slices, width      extents; macs is their product without `width`
///       blocks, paired, in_place, over_columns, private      as in `cpp_choices`; the panel of each thread is private
///       panel                   elements of the panel, 0 where the data is read where it is
///     loops                     loops over rows: the phase itself, or how the panel is filled; null where there are none
///       count                   iterations of the loops outside of lane and tile
///       lane, tile              extents of the axes that vectors lie over and that are summed side by side, or 1
///       sums, inner             terms of the sum, and of a producer that is summed inside of it for each of them
///       macs                    multiplications and additions of all iterations
///       operands                a list of objects:
///         elements              of the buffer
///         read                  elements of the iteration space that it depends on
///         lanes                 "none", "plain", "partial", "strided" or "scattered": how neighbouring lanes stand
///         in_tile, in_inner, from_weights      whether it depends on the tile, belongs to the producer, is a weight
///         conditions            tests for what is outside of the data
///         divisions             quotients and remainders in its address
std::string cpp_phases(const Plan& plan, const CppOptions& options);

}  // namespace syno
