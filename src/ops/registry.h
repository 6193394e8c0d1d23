// All ops. Every folder below src/ops defines `std::vector<OpDef> ops_of_<folder>()`; CMake writes
// the list of these functions, so that a new op is a new folder.
#pragma once

#include "ops/op.h"

namespace netcl {

// In the order of their names. They live as long as the process.
const std::vector<const OpDef*>& all_ops();
const OpDef& find_op(std::string_view name);  // ArgumentError that names near ones
const OpDef* find_op_or_null(std::string_view name);

// An op of a user, found by its name but in no list. Its address stays, also when it is replaced or
// unregistered: calls of it may be recorded. ArgumentError when the name is taken.
const OpDef& register_op(OpDef op, bool replace = false);
void unregister_op(std::string_view name);  // a user's

// Names of an op's variants, those of users too.
std::vector<std::string> variant_names(const OpDef& op);
const OpVariant* find_user_variant(std::string_view op, std::string_view variant);
bool is_user_variant(std::string_view variant);  // of any op
std::uint64_t user_variants_generation();        // raised when one is registered

namespace detail {
// Generated: the ops of all folders.
std::vector<OpDef> make_ops();
}  // namespace detail

}  // namespace netcl
