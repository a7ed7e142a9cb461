// Runs a submission of the c ABI: maps inputs read-only, loads the library, calls, times, hands out
// bytes. It knows no expected output, no tolerance and no verdict.
//
// usage: runner CONTROL_FD INPUTS_FD OUTPUTS_FD ECHO_FD LIBRARY SYMBOL SHIM
// SHIM is a library made from the task's signature; it unpacks an array of pointers to the values
// of the arguments and calls the function.

#include <dlfcn.h>
#include <signal.h>

#include <cstdio>
#include <exception>
#include <new>

#include "arenas.h"
#include "wire.h"
#ifdef KBENCH_CUDA
#include "device_cuda.h"
#else
#include "device_cpu.h"
#endif

namespace {

Arenas arenas;
using Shim = void (*)(void* function, void** arguments);

void on_signal(int number, siginfo_t* info, void*) {
  char text[160];
  if (number == SIGSEGV && arenas.inputs.holds(info->si_addr)) {
    snprintf(text, sizeof text, "wrote to a read-only input, %zu bytes into the inputs",
             static_cast<size_t>(static_cast<char*>(info->si_addr) - arenas.inputs.data));
    wire::fail(arenas.control, wire::kInputWrite, text);
  }
  if (number == SIGSEGV || number == SIGBUS)
    snprintf(text, sizeof text, "%s at address %p", strsignal(number), info->si_addr);
  else
    snprintf(text, sizeof text, "%s", strsignal(number));
  wire::fail(arenas.control, wire::kSignal, text);
}

void catch_signals() {
  static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}

void* symbol(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) wire::fail(arenas.control, wire::kSymbol, dlerror());
  void* address = dlsym(handle, name);
  if (address == nullptr) wire::fail(arenas.control, wire::kSymbol, dlerror());
  return address;
}

double run_call(Device& device, const wire::Call& call, Shim shim, void* function) {
  size_t count = call.arguments.size();
  std::vector<void*> pointers(count), values(count);
  for (size_t i = 0; i < count; ++i) {
    const auto& argument = call.arguments[i];
    bool scalar = argument.kind == wire::kValue;
    if (!scalar) pointers[i] = device.pointer(argument);
    values[i] = scalar ? const_cast<uint64_t*>(&argument.value)
                       : static_cast<void*>(&pointers[i]);
  }
  return device.call(call, [&] { shim(function, values.data()); });
}

void serve(Device& device, Shim shim, void* function) {
  for (;;) {
    wire::Header header{};
    wire::read_all(arenas.control, &header, sizeof header);
    if (header.magic != wire::kMagic || header.length > 64 * 1024) _exit(3);
    std::vector<char> body(header.length);
    wire::read_all(arenas.control, body.data(), body.size());
    if (header.kind == wire::kEnd) _exit(0);
    if (header.kind != wire::kCall) _exit(3);
    wire::Call call = wire::parse_call(body);
    wire::DoneBody done{call.head.call_id, run_call(device, call, shim, function), 0, 0};
    wire::send(arenas.control, wire::kDone, &done, sizeof done);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  arenas.control = atoi(argv[1]);
  arenas.inputs = Arena::map(atoi(argv[2]), PROT_READ);
  arenas.outputs = Arena::map(atoi(argv[3]), PROT_READ | PROT_WRITE);
  arenas.echo = Arena::map(atoi(argv[4]), PROT_READ | PROT_WRITE);
  catch_signals();
  try {
    // The overhead is measured and told before a line of the submission has run.
    Device device(arenas);
    double overhead_ns = device.overhead_ns();
    wire::send(arenas.control, wire::kReady, &overhead_ns, sizeof overhead_ns);
    auto shim = reinterpret_cast<Shim>(symbol(argv[7], "kbench_invoke"));
    void* function = symbol(argv[5], argv[6]);
    serve(device, shim, function);
  } catch (const std::bad_alloc&) {
    wire::fail(arenas.control, wire::kMemory, "std::bad_alloc: an allocation failed");
  } catch (const std::exception& error) {
    wire::fail(arenas.control, wire::kException, error.what());
  } catch (...) {
    wire::fail(arenas.control, wire::kException, "threw something that is no std::exception");
  }
}
