// The file of an enumerated space: what it was made for, in readable lines, then the space itself.
//
//     syno enumeration 1
//     input	[N, C_in: unordered, H, H]
//     limit max_depth	12
//     rule R1a merge-undoes-split	5f3c0a91...
//     ...
//     end	<check sum of the lines above>
//     <Space::save>
//
// So a file of another specification or other rules is rejected with the difference named.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "syno/rules/catalogue.h"
#include "syno/space/space.h"

namespace syno {

/// Everything that decides which operators a specification has, as (name, value): shapes, variables, bindings, limits.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts specification_facts(const Specification& spec);
/// The rules that are on, each with the hash of its doc.
Facts rule_facts(const RuleSet& rules);

void save_space(std::ostream& out, const Space& space, const Specification& spec,
                const RuleSet& rules);

/// Throws UserError when the file is none, is damaged or cut off, or was made for another specification or other rules;
/// the message names what differs. `name` is the file's name in messages.
Space load_space(std::istream& in, const std::string& name, const Specification& spec,
                 const RuleSet& rules);

}  // namespace syno
