// Replaces functions that the runner calls: by its table of imports, or by writing over their code.
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace hostile {

static void make_writable(void* address, size_t size, int more = 0) {
  uintptr_t page = reinterpret_cast<uintptr_t>(address) & ~uintptr_t(4095);
  size_t length = reinterpret_cast<uintptr_t>(address) + size - page;
  mprotect(reinterpret_cast<void*>(page), length, PROT_READ | PROT_WRITE | more);
}

struct Import {
  const char* name;
  void* with;
  int replaced;
};

// `dlpi_addr` is where the object was loaded.
static void patch_object(const dl_phdr_info* info, Import* import) {
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela)* tables[2] = {};
  size_t sizes[2] = {};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    auto entry = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      auto at = entry->d_un.d_ptr;  // glibc has added the load address already
      if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(at);
      if (entry->d_tag == DT_JMPREL) tables[0] = reinterpret_cast<const ElfW(Rela)*>(at);
      if (entry->d_tag == DT_PLTRELSZ) sizes[0] = entry->d_un.d_val;
      if (entry->d_tag == DT_RELA) tables[1] = reinterpret_cast<const ElfW(Rela)*>(at);
      if (entry->d_tag == DT_RELASZ) sizes[1] = entry->d_un.d_val;
    }
  }
  for (int t = 0; t < 2 && symbols != nullptr && names != nullptr; ++t) {
    for (size_t i = 0; tables[t] != nullptr && i < sizes[t] / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Rela)& relocation = tables[t][i];
      const char* name = names + symbols[ELF64_R_SYM(relocation.r_info)].st_name;
      if (strcmp(name, import->name) != 0) continue;
      auto slot = reinterpret_cast<void**>(info->dlpi_addr + relocation.r_offset);
      make_writable(slot, sizeof *slot);
      *slot = import->with;
      ++import->replaced;
    }
  }
}

// The main program comes first.
static int patch_program(dl_phdr_info* info, size_t, void* data) {
  patch_object(info, static_cast<Import*>(data));
  return 1;  // no further object
}

// Every object but the one that this is part of: what replaces a function may call it.
static int patch_other(dl_phdr_info* info, size_t, void* data) {
  auto here = reinterpret_cast<uintptr_t>(&patch_program);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    bool loaded = info->dlpi_phdr[i].p_type == PT_LOAD;
    if (loaded && here >= low && here < low + info->dlpi_phdr[i].p_memsz) return 0;
  }
  patch_object(info, static_cast<Import*>(data));
  return 0;
}

// How many slots of the main program's table of imports now hold `with`.
static int patch_import(const char* name, void* with) {
  Import import{name, with, 0};
  dl_iterate_phdr(patch_program, &import);
  return import.replaced;
}

// The same of all other objects: what Python calls lies in libraries.
[[maybe_unused]] static int patch_imports(const char* name, void* with) {
  Import import{name, with, 0};
  dl_iterate_phdr(patch_other, &import);
  return import.replaced;
}

// Writes a jump to `to` over the first bytes of a function (x86-64).
static void patch_code(void* function, void* to) {
  unsigned char jump[12] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0};
  memcpy(jump + 2, &to, sizeof to);
  make_writable(function, sizeof jump, PROT_EXEC);
  memcpy(function, jump, sizeof jump);
}

}  // namespace hostile
