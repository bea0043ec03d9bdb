// The text of network.h that is the same for all networks, with @NAMES@ for what is not.
#pragma once

#include <string_view>

namespace syno::cpp {

/// The comment at the head, and what is included.
std::string_view network_head();
/// What steps that are no kernels call.
std::string_view network_plain();
/// Among them products of two tensors that the network computes, and attention.
std::string_view network_products();
/// The function that computes one image.
std::string_view network_image();
/// The functions of the C interface, and the header that declares them.
std::string_view network_interface();
std::string_view network_header();

}  // namespace syno::cpp
