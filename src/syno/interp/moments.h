// How large the results of an operator are, on average, for random data and weights: what initial weights are scaled by.
//
// Let x and all weights be independent, of mean 0 and variance 1. A term of y[o] is x[i] * w0[j0] * w1[j1] * ...; two
// terms of different indices are uncorrelated, and n terms of equal indices add up to n times one of them. So
//
//     E[y[o]^2] = sum over different (i, j0, j1, ...) of n^2
//
// (which is a product over components: they tell terms apart one by one), and with variances s_t^2 of the weights this is multiplied by all of them. Masked terms are not counted.
#pragma once

#include <cstdint>

#include "syno/graph/operator.h"

namespace syno {

/// The mean over output elements of E[y^2]. When it would take more than about `most_terms` terms, over as many elements,
/// sampled from `seed`, as that allows, and at least one. 0 when all terms are masked.
/// The sum over all elements is also that of E[(dL/dx)^2] and of E[(dL/dw)^2] for dL/dy of variance 1: what is
/// multiplied are the same terms, read the other way.
/// Throws UserError as `operator_shapes` does, and where one component of an element has more than 2^26 terms.
double mean_square(const Operator& op, const Values& values, std::uint64_t seed = 0,
                   std::int64_t most_terms = 1 << 18);

}  // namespace syno
