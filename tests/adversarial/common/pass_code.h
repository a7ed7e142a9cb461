// Overwrites the code with which the torch runner passes the gate (native/call.h).
#include <dlfcn.h>

#include <initializer_list>

#include "../common/gate_page.h"
#include "../common/patch.h"

namespace hostile {

using Page = std::atomic<uint64_t>[64];

struct Sought {
  const char* name;
  void* found;
};

static int note(dl_phdr_info* info, size_t, void* sought) {
  auto wanted = static_cast<Sought*>(sought);
  void* library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library != nullptr) wanted->found = dlsym(library, wanted->name);
  return wanted->found != nullptr;
}

// A function that the runner's own library exports.
static void* of_the_runner(const char* name) {
  Sought sought{name, nullptr};
  dl_iterate_phdr(note, &sought);
  return sought.found;
}

// Makes calls pass the gate through another function. Returns whether there was one before.
static bool pass_by(void* other) {
  void* pass = of_the_runner("kb_gate_pass");
  if (pass != nullptr) patch_code(pass, other);
  return pass != nullptr;
}

}  // namespace hostile
