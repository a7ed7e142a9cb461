// Tries every way out of a jail that it knows, and says of each what came of it. One line a try:
// its name, and "ok" or the name of the errno. With an argument it does that one thing instead.

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "confine.h"

static void say(const char* name, long result) {
  printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno));
  fflush(stdout);
}

static int joined(int family, const sockaddr* to, socklen_t size) {
  int fd = socket(family, SOCK_STREAM, 0);
  return fd < 0 ? -1 : connect(fd, to, size);
}

static void network(int port, const char* abstract) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  say("tcp", joined(AF_INET, reinterpret_cast<sockaddr*>(&in), sizeof in));
  say("udp", socket(AF_INET6, SOCK_DGRAM, 0));
  say("raw", socket(AF_PACKET, SOCK_RAW, 0));
  say("netlink", socket(AF_NETLINK, SOCK_RAW, 0));
  say("vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  strncpy(un.sun_path + 1, abstract, sizeof un.sun_path - 2);
  socklen_t size = offsetof(sockaddr_un, sun_path) + 1 + strlen(abstract);
  say("abstract", joined(AF_UNIX, reinterpret_cast<sockaddr*>(&un), size));
  strcpy(un.sun_path, "/run/docker.sock");
  say("docker", joined(AF_UNIX, reinterpret_cast<sockaddr*>(&un), sizeof un));
}

static void processes(int victim, const char* secret) {
  char path[64], byte;
  iovec io{&byte, 1}, there{reinterpret_cast<void*>(0x10000), 1};
  say("ptrace_init", ptrace(PTRACE_SEIZE, 1, nullptr, nullptr));
  say("ptrace_victim", ptrace(PTRACE_SEIZE, victim, nullptr, nullptr));
  say("vm_readv", process_vm_readv(1, &io, 1, &there, 1, 0));
  say("vm_writev", process_vm_writev(1, &io, 1, &there, 1, 0));
  say("init_mem", open("/proc/1/mem", O_RDWR));
  say("init_environ", open("/proc/1/environ", O_RDONLY));
  say("init_root", open("/proc/1/root/etc", O_RDONLY));
  say("init_fd", open("/proc/1/fd/0", O_RDONLY));
  snprintf(path, sizeof path, "/proc/%d/mem", victim);
  say("victim_mem", open(path, O_RDWR));
  say("victim_signal", kill(victim, SIGKILL));
  say("init_stop", kill(1, SIGSTOP));
  int init = static_cast<int>(syscall(SYS_pidfd_open, 1, 0));
  say("pidfd_getfd", syscall(SYS_pidfd_getfd, init, 0, 0));
  say("secret", open(secret, O_RDONLY));
}

static void surfaces() {
  static char buffer[4096];
  say("bpf", syscall(SYS_bpf, 0, buffer, 72));
  say("perf_event", syscall(SYS_perf_event_open, buffer, 0, -1, -1, 0));
  say("userfaultfd", syscall(SYS_userfaultfd, 0));
  say("io_uring", syscall(SYS_io_uring_setup, 8, buffer));
  say("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1));
  say("mount", mount("none", "/tmp", "tmpfs", 0, nullptr));
  say("remount", mount("none", "/usr", nullptr, MS_REMOUNT | MS_BIND, nullptr));
  say("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
  say("unshare_user", unshare(CLONE_NEWUSER));
  say("unshare_net", unshare(CLONE_NEWNET));
  int space = open("/proc/self/ns/user", O_RDONLY);
  say("setns", setns(space, 0));
  say("clone_user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0));
  say("clone3", syscall(SYS_clone3, buffer, 88));
  say("chroot", chroot("/tmp"));
  say("kexec", syscall(SYS_kexec_load, 0, 0, nullptr, 0));
  say("module", syscall(SYS_init_module, buffer, 8, ""));
  say("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, nullptr));
  timespec now{};
  say("set_clock", clock_settime(CLOCK_REALTIME, &now));
  say("system_v", shmget(IPC_PRIVATE, 1 << 20, IPC_CREAT | 0600));
  say("mknod", mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)));
#ifdef __x86_64__
  long old;  // getpid by the 32-bit table
  asm volatile("int $0x80" : "=a"(old) : "a"(20) : "memory");
  errno = static_cast<int>(-old);
  say("int80", old < 0 ? -1 : 0);
#endif
}

static void privileges() {
  say("setuid", setuid(0));
  say("setgid", setgid(0));
  say("nice", setpriority(PRIO_PROCESS, 0, -20));
  sched_param high{1};
  say("realtime", sched_setscheduler(0, SCHED_FIFO, &high));
  rlimit more{RLIM_INFINITY, RLIM_INFINITY};
  say("more_processes", setrlimit(RLIMIT_NPROC, &more));
  say("more_cpu", setrlimit(RLIMIT_CPU, &more));
  say("core", setrlimit(RLIMIT_CORE, &more));
  say("oom_immune", open("/proc/self/oom_score_adj", O_WRONLY) < 0 ? -1 : system(
      "echo -1000 > /proc/self/oom_score_adj 2>/dev/null") == 0 ? 0 : (errno = EACCES, -1));
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/power/state",
                           "/dev/mem", "/proc/kcore"})
    say(path, open(path, O_WRONLY));
  for (const char* path : {"/etc/shadow", "/etc/passwd", "/root", "/home", "/var", "/run", "/proc/kmsg"})
    say(path, open(path, O_RDONLY));
  cpu_set_t before, after, all;
  sched_getaffinity(0, sizeof before, &before);
  memset(&all, 0xff, sizeof all);
  sched_setaffinity(0, sizeof all, &all);
  sched_getaffinity(0, sizeof after, &after);
  printf("affinity %s\n", CPU_EQUAL(&before, &after) ? "kept" : "changed");
}

// Folders below `path` in which this process can make files, and mounts that honour setuid bits.
static void walk(const std::string& path, int depth) {
  if (path == "/proc") return;
  struct statvfs mounted{};
  if (statvfs(path.c_str(), &mounted) == 0 && !(mounted.f_flag & ST_NOSUID))
    printf("setuid_works %s\n", path.c_str());
  std::string probe = path + "/kbench-probe";
  int fd = open(probe.c_str(), O_CREAT | O_WRONLY, 0600);
  if (fd >= 0) printf("writable %s\n", path.c_str());
  DIR* folder = depth == 0 ? nullptr : opendir(path.c_str());
  if (folder == nullptr) return;
  while (dirent* entry = readdir(folder))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
      walk((path == "/" ? "" : path) + "/" + entry->d_name, depth - 1);
  closedir(folder);
}

static void listing(const char* path) {
  DIR* folder = opendir(path);
  std::vector<std::string> names;
  while (dirent* entry = folder == nullptr ? nullptr : readdir(folder))
    if (entry->d_name[0] != '.') names.push_back(entry->d_name);
  std::sort(names.begin(), names.end());
  printf("list:%s", path);
  for (auto& name : names) printf(" %s", name.c_str());
  printf("\n");
}

static void confined() {
  printf("confine %d\n", confine());
  say("c_fork", fork());
  say("c_vfork", syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, 0));
  say("c_exec", execl("/bin/true", "true", nullptr));
  say("c_socket", socket(AF_UNIX, SOCK_STREAM, 0));
  say("c_memfd", memfd_create("x", 0));
  printf("c_shell %s\n", popen("true", "r") == nullptr ? "none" : "ok");
  int ran = 0;
  std::thread([&] { ran = 1; }).join();
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < 1000; ++i) sum += i;
  printf("c_threads %s\n", ran == 1 && sum == 499500 ? "ok" : "broken");
  printf("c_maps %s\n", fopen("/proc/self/maps", "r") == nullptr ? "closed" : "ok");
}

static void bombs(const std::string& what) {
  size_t total = 0;
  if (what == "forks")
    for (;;) total += fork() > 0;
  if (what == "threads")
    for (;;) try { std::thread([] { pause(); }).detach(); } catch (...) { break; }
  if (what == "anonymous" || what == "shared" || what == "locked")
    for (;; total += 8 << 20) {
      int flags = what == "shared" ? MAP_SHARED : MAP_PRIVATE;
      void* at = mmap(nullptr, 8 << 20, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
      if (at == MAP_FAILED) break;
      if (what == "locked") mlock(at, 8 << 20);
      memset(at, 1, 8 << 20);
    }
  static char block[1 << 20];
  if (what == "memfd")  // never mapped, so that no process has it among its pages
    for (int fd; (fd = memfd_create("x", 0)) >= 0;)
      for (int i = 0; i < 60 && write(fd, block, sizeof block) > 0; ++i) total += sizeof block;
  if (what == "files")
    for (int i = 0; i < 1000; ++i) {
      std::string path = (i % 2 ? "/tmp/f" : "/dev/shm/f") + std::to_string(i);
      int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
      for (ssize_t n; (n = write(fd, block, sizeof block)) > 0;) total += n;
      close(fd);
    }
  if (what == "pipes")
    for (int ends[2]; pipe2(ends, O_NONBLOCK) == 0;) {
      fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
      for (ssize_t n; (n = write(ends[1], block, 4096)) > 0;) total += n;
    }
  printf("total %zu\n", total >> 20);
  fflush(stdout);
  if (what == "threads") pause();
}

int main(int argc, char** argv) {
  if (argc == 2) return bombs(argv[1]), 0;
  listing("/proc/self/fd");
  listing("/dev");
  network(atoi(argv[1]), argv[2]);
  processes(atoi(argv[3]), argv[4]);
  surfaces();
  privileges();
  walk("/", 3);
  confined();
}
