// Included before everything else when better-sqlite3 is compiled for Node 24.19 and later 24s.
//
// From 24.19 on, Node's ObjectWrap removes an environment cleanup hook in its destructor, and that aborts the process
// ("Assertion failed: (env) != nullptr") whenever the garbage collector frees a statement while no script runs:
// https://github.com/nodejs/node/issues/65446. So ObjectWrap is compiled without that hook, as it was until 24.18.
#include <node.h>

namespace node {
inline void NoCleanupHook(v8::Isolate*, void (*)(void*), void*) {}
}  // namespace node

#define AddEnvironmentCleanupHook NoCleanupHook
#define RemoveEnvironmentCleanupHook NoCleanupHook
#include <node_object_wrap.h>
#undef AddEnvironmentCleanupHook
#undef RemoveEnvironmentCleanupHook
