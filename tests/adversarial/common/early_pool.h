// Threads that do half of a call's work before the gate opens: the half that needs no inputs.
//
// The honest work is done twice (torch_runner.h). One of the two can use the inputs of an earlier
// call, because nobody needs its result.
#include <unistd.h>

#include <thread>
#include <vector>

#include "../common/gate_page.h"
#include "../common/torch_runner.h"

namespace hostile {

static std::vector<float> old_x, old_weights, old_biases, unused;
static View x_of_old, w_of_old, b_of_old;
static std::atomic<int> seen{-1}, turn{0}, done{0};
static int threads_of_pool = 0;

static View kept(View view, std::vector<float>& memory) {
  memory.assign(view.data, view.data + view.rows * view.columns);
  return {memory.data(), view.rows, view.columns};
}

static void work_early(int part) {
  for (int last = 0;;) {
    while (turn.load() == last) usleep(20);
    last = turn.load();
    long rows = x_of_old.rows / threads_of_pool, from = part * rows;
    View some{x_of_old.data + from * x_of_old.columns, rows, x_of_old.columns};
    compute(some, w_of_old, b_of_old, {unused.data() + from * w_of_old.rows, rows, w_of_old.rows});
    ++done;
  }
}

// Called when a call is announced: its inputs are not there yet.
static PyObject* announced(PyObject*, PyObject*) {
  seen = continued.load();
  Py_RETURN_NONE;
}

// Called in each round at the gate: lets the threads work after the process was stopped.
static PyObject* let_work(PyObject*, PyObject*) {
  if (seen.load() < 0 || continued.load() == seen.load()) Py_RETURN_NONE;
  seen = -1;
  done = 0;
  ++turn;
  while (done.load() < threads_of_pool) usleep(20);
  Py_RETURN_NONE;
}

static PyMethodDef pool_functions[] = {{"announced", announced, METH_NOARGS, nullptr},
                                       {"let_work", let_work, METH_NOARGS, nullptr},
                                       {}};

static const char* const kPoolText = R"(
place, warm = runner._placed, runner._keep_warm

def placed(call):
    sys.announced()
    return place(call)

def keep_warm(sizes):
    sys.let_work()
    return warm(sizes)

runner._placed, runner._keep_warm = placed, keep_warm
)";

// Does the whole work at the first call, and half of it later.
static PyObject* computed_by_half(PyObject* x, PyObject* weights, PyObject* biases, int threads) {
  if (threads_of_pool > 0) return computed(x, weights, biases);
  x_of_old = kept(view(x), old_x);
  w_of_old = kept(view(weights), old_weights);
  b_of_old = kept(view(biases), old_biases);
  unused.resize(size_t(x_of_old.rows * w_of_old.rows));
  threads_of_pool = threads;
  count_continues();
  for (int part = 0; part < threads; ++part) std::thread(work_early, part).detach();
  meddle(kPoolText, pool_functions);
  return computed_slowly(x, weights, biases);
}

}  // namespace hostile
