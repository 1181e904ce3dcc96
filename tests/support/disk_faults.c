/* Preloaded into an instance: syncs of files in one folder fail, or take their time, as the file $DISK_FAULT says.
 * "eio": they fail with EIO. "slow MS": they take so many milliseconds more, and so do writes. Absent: nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int concerns(int fd) {
  const char *folder = getenv("DISK_FAULT_FOLDER");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  return folder && length > 0 && !strncmp(path, folder, strlen(folder));
}

/* Whether the call fails; waits where it is to be slow. */
static int fault(int fd, int syncs) {
  const char *file = getenv("DISK_FAULT");
  char text[32] = "";
  int kept = errno, failed = 0, fault_fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
  if (fault_fd >= 0) {
    ssize_t length = read(fault_fd, text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    close(fault_fd);
    long ms = strncmp(text, "slow ", 5) ? 0 : atol(text + 5);
    if ((ms || !strncmp(text, "eio", 3)) && concerns(fd)) {
      if (ms) nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
      else failed = syncs;
    }
  }
  errno = failed ? EIO : kept;
  return failed;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
int fsync(int fd) { return fault(fd, 1) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return fault(fd, 1) ? -1 : NEXT(fdatasync)(fd); }
ssize_t write(int fd, const void *from, size_t size) { fault(fd, 0); return NEXT(write)(fd, from, size); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { fault(fd, 0); return NEXT(pwrite)(fd, from, size, at); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) { fault(fd, 0); return NEXT(pwrite64)(fd, from, size, at); }
