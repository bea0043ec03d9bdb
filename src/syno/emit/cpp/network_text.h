// The text of network.h that is the same for all networks, with @NAMES@ for what is not.
#pragma once

#include <string_view>

namespace syno::cpp {

/// The comment at the head of a library, and what is included.
std::string_view network_head();
/// What steps that are no kernels call.
std::string_view network_plain();
/// Among them products of two tensors that the network computes, and attention.
std::string_view network_products();
/// The kernels, weights and threads of a library; and those of a host.
std::string_view network_held();
std::string_view network_hosted();
/// The steps of one image.
std::string_view network_image();
/// How teams compute a batch.
std::string_view network_driver();
/// The functions that a host calls.
std::string_view network_program();
/// The weights of a library, as files have them.
std::string_view network_weights();
/// The functions of the C interface of a library, and the header that declares them.
std::string_view network_interface();
std::string_view network_header();

}  // namespace syno::cpp
