/*
 * Preloaded into a daemon: the disk below the folders DISK_ROOTS (separated by ":").
 *
 * While the file DISK_FAULT names a call and an errno ("write 28"), each such call to a file there fails with it. All other
 * changes of files are also written to the journal DISK_JOURNAL, if one is named, in the order in which they happen: "W
 * offset length path" with the bytes behind it, "T size 0 path", "S 0 0 path" for a sync, "U 0 0 path" for an unlink.
 * Syncs are only noted there: what a power cut would leave is made from the journal.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1;

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int ends(const char *path, const char *end) {
  size_t length = strlen(path), of = strlen(end);
  return length >= of && strcmp(path + length - of, end) == 0;
}

/* What is shared memory, or says who works here, is of no use after a power cut. */
static int is_ours(const char *path) {
  const char *roots = getenv("DISK_ROOTS");
  if (path[0] != '/' || ends(path, "-shm") || ends(path, ".lock") || ends(path, ".pid") || ends(path, ".sock")) return 0;
  while (roots != NULL && *roots != 0) {
    size_t length = strcspn(roots, ":");
    if (strncmp(path, roots, length) == 0 && (path[length] == '/' || path[length] == 0)) return 1;
    roots += length + (roots[length] == ':');
  }
  return 0;
}

static int path_of(int fd, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

static int fails(const char *call) {
  const char *file = getenv("DISK_FAULT");
  char text[64], named[32];
  int code, fd = file == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
  syscall(SYS_close, fd);
  if (length <= 0) return 0;
  text[length] = 0;
  if (sscanf(text, "%31s %d", named, &code) != 2 || strcmp(named, call) != 0) return 0;
  errno = code;
  return 1;
}

static void note(char what, long long at, const void *bytes, size_t length, const char *path) {
  const char *file = getenv("DISK_JOURNAL");
  char head[4200];
  if (file == NULL) return;
  if (journal < 0) journal = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  int size = snprintf(head, sizeof head, "%c %lld %zu %s\n", what, at, length, path);
  struct iovec parts[2] = {{head, (size_t)size}, {(void *)bytes, length}};
  /* In one call, so that a kill leaves whole records, but perhaps the last. */
  syscall(SYS_writev, journal, parts, 2);
}

#define IN_TURN(type, body)        \
  pthread_mutex_lock(&turn);       \
  type result = body;              \
  int failed = errno;

#define END_TURN                   \
  pthread_mutex_unlock(&turn);     \
  errno = failed;                  \
  return result;

static long long position(int fd) {
  struct stat found;
  if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &found) == 0 ? found.st_size : 0;
  return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *bytes, size_t length) {
  char path[4096];
  if (!path_of(fd, path, sizeof path)) return NEXT(write)(fd, bytes, length);
  if (fails("write")) return -1;
  pthread_mutex_lock(&turn);
  long long at = position(fd);
  ssize_t result = NEXT(write)(fd, bytes, length);
  int failed = errno;
  if (result > 0) note('W', at, bytes, (size_t)result, path);
  END_TURN
}

#define PWRITE(name, offset_t)                                             \
  ssize_t name(int fd, const void *bytes, size_t length, offset_t at) {    \
    char path[4096];                                                       \
    if (!path_of(fd, path, sizeof path)) return NEXT(name)(fd, bytes, length, at); \
    if (fails("write")) return -1;                                         \
    IN_TURN(ssize_t, NEXT(name)(fd, bytes, length, at))                    \
    if (result > 0) note('W', at, bytes, (size_t)result, path);            \
    END_TURN                                                               \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

/* Not passed on as they are: one part is one write, as far as a power cut is concerned. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
  char path[4096];
  if (!path_of(fd, path, sizeof path)) return NEXT(writev)(fd, parts, count);
  ssize_t sum = 0;
  for (int i = 0; i < count; i++) {
    ssize_t written = write(fd, parts[i].iov_base, parts[i].iov_len);
    if (written < 0) return sum > 0 ? sum : -1;
    sum += written;
  }
  return sum;
}

#define FTRUNCATE(name, offset_t)                                          \
  int name(int fd, offset_t size) {                                        \
    char path[4096];                                                       \
    if (!path_of(fd, path, sizeof path)) return NEXT(name)(fd, size);      \
    if (fails("write")) return -1;                                         \
    IN_TURN(int, NEXT(name)(fd, size))                                     \
    if (result == 0) note('T', size, "", 0, path);                         \
    END_TURN                                                               \
  }
FTRUNCATE(ftruncate, off_t)
FTRUNCATE(ftruncate64, off64_t)

#define SYNC(name)                                                         \
  int name(int fd) {                                                       \
    char path[4096];                                                       \
    if (!path_of(fd, path, sizeof path)) return NEXT(name)(fd);            \
    if (fails("sync")) return -1;                                          \
    IN_TURN(int, getenv("DISK_JOURNAL") == NULL ? NEXT(name)(fd) : 0)      \
    if (result == 0) note('S', 0, "", 0, path);                            \
    END_TURN                                                               \
  }
SYNC(fsync)
SYNC(fdatasync)

int unlink(const char *path) {
  if (!is_ours(path)) return NEXT(unlink)(path);
  IN_TURN(int, NEXT(unlink)(path))
  if (result == 0) note('U', 0, "", 0, path);
  END_TURN
}
