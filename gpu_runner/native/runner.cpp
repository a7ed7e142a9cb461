// Runs a submission of the c ABI: maps inputs read-only, loads the library, calls, times, hands out
// bytes. It knows no expected output, no tolerance and no verdict.
//
// usage: runner CONTROL_FD INPUTS OUTPUTS GATE LIBRARY SYMBOL SHIM
// INPUTS and OUTPUTS are descriptors of shared files, or FD:BYTES of a device's memory. GATE is a
// descriptor of a shared page, or - where calls pass none.
// SHIM is a library made from the task's signature; it unpacks an array of pointers to the values
// of the arguments and calls the function.

#include <dlfcn.h>
#include <exception>
#include <new>

#include "arenas.h"
#include "confine.h"
#include "signals.h"
#include "wire.h"
#ifdef KBENCH_SANITIZED
#include "device_sanitized.h"
#elif defined(KBENCH_CUDA)
#include "device_cuda.h"
#else
#include "device_cpu.h"
#endif

namespace {

Arenas arenas;
using Shim = void (*)(void* function, void** arguments);

void* symbol(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) wire::fail(arenas.control, wire::kSymbol, dlerror());
  void* address = dlsym(handle, name);
  if (address == nullptr) wire::fail(arenas.control, wire::kSymbol, dlerror());
  return address;
}

// A call's arguments as the shim wants them: pointers to values.
struct Prepared {
  std::vector<void*> pointers, values;

  Prepared(Device& device, const wire::Call& call)
      : pointers(call.arguments.size()), values(call.arguments.size()) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& argument = call.arguments[i];
      bool scalar = argument.kind == wire::kValue;
      if (!scalar) pointers[i] = device.pointer(argument);
      if (i < kMostTensors)
        kb_tensors[i] = {static_cast<const char*>(pointers[i]), scalar ? 0 : argument.bytes};
      values[i] = scalar ? const_cast<uint64_t*>(&argument.value)
                         : static_cast<void*>(&pointers[i]);
    }
  }
};

void run_call(Device& device, const std::vector<char>& body, Shim shim, void* function) {
  size_t at = 0;
  wire::Call call = wire::parse_call(body, at);
  if (at != body.size()) _exit(3);
  device.prepare(call);
  Prepared prepared(device, call);
  auto invoke = [&] { shim(function, prepared.values.data()); };
  Timed timed = device.call(call.head.call_id, invoke);
  device.finish(call);
  wire::DoneBody done{call.head.call_id, timed.time_ns, 0, timed.host_ns};
  wire::send(arenas.control, wire::kDone, &done, sizeof done);
}

// Launches and nothing else: the supervisor's clock is the one that counts here.
void run_burst(Device& device, const std::vector<char>& body, Shim shim, void* function) {
  wire::Burst burst = wire::parse_burst(body);
  std::vector<Prepared> prepared;
  for (const wire::Call& call : burst.calls) prepared.emplace_back(device, call);
  device.burst([&] {
    for (Prepared& one : prepared) shim(function, one.values.data());
  });
  wire::DoneBody done{burst.head.burst_id, 1.0, 0, 0};
  wire::send(arenas.control, wire::kDone, &done, sizeof done);
}

// One call again and again, or as a CUDA graph. Nothing of it is timed.
void run_repeat(Device& device, uint32_t kind, const std::vector<char>& body, Shim shim,
                void* function) {
  wire::Repeat repeat = wire::parse_repeat(body);
  device.prepare(repeat.call);
  Prepared prepared(device, repeat.call);
  auto invoke = [&] { shim(function, prepared.values.data()); };
  if (kind == wire::kGraph)
    device.graph(invoke);
  else
    device.burst([&] {
      for (uint32_t i = 0; i < repeat.head.calls; ++i) invoke();
    });
  device.finish(repeat.call);
  wire::DoneBody done{repeat.head.burst_id, 1.0, 0, 0};
  wire::send(arenas.control, wire::kDone, &done, sizeof done);
}

void serve(Device& device, Shim shim, void* function) {
  for (;;) {
    wire::Header header{};
    wire::read_all(arenas.control, &header, sizeof header);
    if (header.magic != wire::kMagic || header.length > 64 * 1024) _exit(3);
    std::vector<char> body(header.length);
    wire::read_all(arenas.control, body.data(), body.size());
    switch (header.kind) {
      case wire::kCall:
        run_call(device, body, shim, function);
        break;
      case wire::kBurst:
        run_burst(device, body, shim, function);
        break;
      case wire::kRepeat:
      case wire::kGraph:
        run_repeat(device, header.kind, body, shim, function);
        break;
      case wire::kScratch: {
        double bytes = device.scratch_bytes();
        wire::send(arenas.control, wire::kReady, &bytes, sizeof bytes);
        break;
      }
      default:
        _exit(header.kind == wire::kEnd ? 0 : 3);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  arenas.control = atoi(argv[1]);
  arenas.inputs = Arena::open(argv[2], PROT_READ);
  arenas.outputs = Arena::open(argv[3], PROT_READ | PROT_WRITE);
  if (strcmp(argv[4], "-") != 0) arenas.gate = Arena::open(argv[4], PROT_READ | PROT_WRITE);
  kb_catch_signals(arenas.control, arenas.inputs.data,
                   arenas.inputs.on_device() ? 0 : arenas.inputs.size);
  try {
    // A profiler or a sanitizer around this process needs more than a submission may have.
    bool wrapped = getenv("KERNEL_PROFILED") != nullptr;
    // The overhead is measured and told before a line of the submission has run.
    Device device(arenas);
    double overhead_ns = device.overhead_ns();
    wire::send(arenas.control, wire::kReady, &overhead_ns, sizeof overhead_ns);
    wire::wait_for_frame(arenas.control);  // by then this process has been stopped once
    if (!wrapped && confine() != 0) _exit(3);
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
