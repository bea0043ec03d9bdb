// syno._core
#include "syno/support/threads.h"

#include "bindings.h"

NB_MODULE(_core, m) {
  namespace bindings = syno::bindings;
  m.doc() = "The C++ library of Syno. Private: the public interface is the package syno.";
  m.attr("__version__") = SYNO_VERSION;
  m.attr("MOST_THREADS") = syno::kMaxThreads;
  bindings::bind_errors(m);
  bindings::bind_seals(m);
  bindings::bind_sizes(m);
  bindings::bind_graph(m);
  bindings::bind_spec(m);
  bindings::bind_interp(m);
  bindings::bind_features(m);
  bindings::bind_rules(m);
  bindings::bind_plan(m);
  bindings::bind_space(m);
  bindings::bind_listing(m);
  bindings::bind_walks(m);
  bindings::bind_explain(m);
  bindings::bind_trials(m);
  bindings::bind_search(m);
  bindings::bind_notation(m);
  bindings::bind_emit(m);
}
