// The system calls of a process that has loaded a submission, for `confine`.
#pragma once

#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <initializer_list>

namespace kbench_confine {

// From here on all machines number their calls alike (linux/asm-generic/unistd.h). Libraries that
// are older know none of them, and newer ones do without where a kernel has none.
constexpr unsigned kFirstNewCall = 424;

// What C, Python, numpy, PyTorch, OpenMP and compilers in the process call once they are loaded.
constexpr unsigned kNeededCalls[] = {
    // threads and time, which kernels call themselves
    __NR_futex, __NR_sched_yield, __NR_clock_gettime, __NR_clock_nanosleep, __NR_nanosleep,
    __NR_clock_getres, __NR_gettimeofday, __NR_times, __NR_getcpu, __NR_membarrier, __NR_rseq,
    __NR_set_robust_list, __NR_get_robust_list, __NR_set_tid_address, __NR_restart_syscall,
    __NR_sched_getaffinity, __NR_sched_setaffinity, __NR_sched_getparam, __NR_sched_getscheduler,
    __NR_sched_get_priority_max, __NR_sched_get_priority_min, __NR_getpriority, __NR_exit,
    __NR_exit_group,
    // memory
    __NR_mmap, __NR_munmap, __NR_mprotect, __NR_mremap, __NR_madvise, __NR_brk, __NR_mincore,
    __NR_msync, __NR_mlock, __NR_mlock2, __NR_munlock, __NR_mlockall, __NR_munlockall, __NR_mbind,
    __NR_get_mempolicy, __NR_set_mempolicy, __NR_pkey_alloc, __NR_pkey_free, __NR_pkey_mprotect,
    // files, the control socket, and the one by which a call's inputs are handed over
    __NR_read, __NR_write, __NR_readv, __NR_writev, __NR_pread64, __NR_pwrite64, __NR_preadv,
    __NR_pwritev, __NR_preadv2, __NR_pwritev2, __NR_recvfrom, __NR_recvmsg, __NR_sendto,
    __NR_getsockopt, __NR_getsockname, __NR_getpeername, __NR_openat, __NR_close, __NR_lseek, __NR_dup, __NR_dup3,
    __NR_fstat, __NR_newfstatat, __NR_statx, __NR_statfs, __NR_fstatfs, __NR_faccessat,
    __NR_readlinkat, __NR_getdents64, __NR_getcwd, __NR_chdir, __NR_fchdir, __NR_umask,
    __NR_mkdirat, __NR_unlinkat, __NR_renameat2, __NR_linkat, __NR_symlinkat, __NR_fchmod,
    __NR_fchmodat, __NR_utimensat, __NR_truncate, __NR_ftruncate, __NR_fallocate, __NR_fsync,
    __NR_fdatasync, __NR_fadvise64, __NR_flock, __NR_sendfile, __NR_copy_file_range,
    __NR_getxattr, __NR_lgetxattr, __NR_fgetxattr, __NR_listxattr, __NR_llistxattr,
    __NR_flistxattr, __NR_pipe2, __NR_eventfd2, __NR_ppoll, __NR_pselect6, __NR_epoll_create1,
    __NR_epoll_ctl, __NR_epoll_pwait,
    // signals that it catches, and what it may know of itself and of the host
    __NR_rt_sigaction, __NR_rt_sigprocmask, __NR_rt_sigreturn, __NR_rt_sigpending,
    __NR_rt_sigsuspend, __NR_rt_sigtimedwait, __NR_sigaltstack, __NR_getpid, __NR_getppid,
    __NR_gettid, __NR_getuid, __NR_geteuid, __NR_getgid, __NR_getegid, __NR_getresuid,
    __NR_getresgid, __NR_getgroups, __NR_getpgid, __NR_getsid, __NR_getrusage, __NR_wait4,
    __NR_waitid, __NR_uname, __NR_sysinfo, __NR_getrandom, __NR_capget, __NR_personality,
#ifdef __NR_open  // calls of x86-64 that newer machines do not have
    __NR_open, __NR_creat, __NR_stat, __NR_lstat, __NR_access, __NR_readlink, __NR_getdents,
    __NR_mkdir, __NR_rmdir, __NR_unlink, __NR_rename, __NR_link, __NR_symlink, __NR_chmod,
    __NR_utime, __NR_utimes, __NR_futimesat, __NR_dup2, __NR_pipe, __NR_eventfd, __NR_poll,
    __NR_select, __NR_epoll_create, __NR_epoll_wait, __NR_pause, __NR_time, __NR_getpgrp,
    __NR_arch_prctl,
#endif
#ifdef __NR_renameat
    __NR_renameat,
#endif
#ifdef __NR_getrlimit
    __NR_getrlimit,
#endif
};

// What must be refused where everything else is allowed.
constexpr unsigned kHarmfulCalls[] = {
    __NR_execve, __NR_execveat, __NR_socket, __NR_socketpair, __NR_connect, __NR_bind,
    __NR_listen, __NR_seccomp, __NR_setrlimit,
    // signals to itself, at once or by a timer, that look like somebody else's
    __NR_kill, __NR_tkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo, __NR_setitimer,
    __NR_timer_create, __NR_mq_open, __NR_mq_notify,
    424,  // pidfd_send_signal
    434,  // pidfd_open
#ifdef __NR_fork
    __NR_fork, __NR_vfork, __NR_alarm,
#endif
};

#define KB_LIST constexpr std::initializer_list<unsigned>
// For fcntl: descriptors, locks, and the sizes of pipes; neither signals nor seals.
KB_LIST kFileCommands = {F_DUPFD, F_GETFD,        F_SETFD,        F_GETFL,        F_SETFL,
                         F_GETLK, F_SETLK,        F_SETLKW,       F_OFD_GETLK,    F_OFD_SETLK,
                         F_OFD_SETLKW, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, F_SETPIPE_SZ};
// For ioctl: is it a terminal, and how large; how much is there to read; blocking and inheritance.
KB_LIST kDeviceCommands = {TCGETS,     0x802C542A /* TCGETS2 */, TIOCGWINSZ, FIONREAD, FIONBIO,
                           FIOCLEX, FIONCLEX};
// For prctl: names of threads and memory, and questions.
KB_LIST kProcessCommands = {PR_SET_NAME,       PR_GET_NAME,           0x53564D41 /* PR_SET_VMA */,
                            PR_GET_DUMPABLE,   PR_GET_SECCOMP,        PR_CAPBSET_READ,
                            PR_GET_TIMERSLACK, PR_GET_NO_NEW_PRIVS,   PR_GET_THP_DISABLE,
                            PR_SET_THP_DISABLE, 51 /* PR_SVE_GET_VL */};
// What must be refused of these where everything else is allowed.
KB_LIST kHarmfulProcessCommands = {PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_DUMPABLE,
                                   59 /* PR_SET_SYSCALL_USER_DISPATCH */};
#undef KB_LIST

}  // namespace kbench_confine
