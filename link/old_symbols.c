/* Names of glibc and libstdc++ that the library must not take in the version of the machine that
 * builds it.
 *
 * A linker takes the newest version of each name, and no older system loads the library then. But
 * for every name here there is an older way to the same function. So the names are defined here,
 * hidden, and the shim and Rust's standard library both get these definitions.
 *
 * scripts/symbol_versions.py lists what is missing here. */

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* The oldest version of each machine, and what its programs say of the struct that stat fills. */
#ifdef __aarch64__
#define OLDEST "GLIBC_2.17"
enum { STRUCT_VERSION = 0 };
#else
#define OLDEST "GLIBC_2.2.5"
enum { STRUCT_VERSION = 1 };
#endif

/* Declares `old_<name>`: the function `name` of an older version. */
#define OLD(result, name, version, ...)                 \
  __asm__(".symver old_" #name ", " #name "@" version); \
  extern result old_##name(__VA_ARGS__)

/* In libdl and libpthread before glibc 2.34. The library names both, see build.rs. */
OLD(void*, dlopen, OLDEST, const char* name, int flags);
OLD(void*, dlsym, OLDEST, void* handle, const char* name);
OLD(int, dlclose, OLDEST, void* handle);
OLD(int, pthread_key_create, OLDEST, unsigned* key, void (*end)(void*));
OLD(int, pthread_key_delete, OLDEST, unsigned key);
OLD(int, pthread_setspecific, OLDEST, unsigned key, const void* value);

void* dlopen(const char* name, int flags) { return old_dlopen(name, flags); }
void* dlsym(void* handle, const char* name) { return old_dlsym(handle, name); }
int dlclose(void* handle) { return old_dlclose(handle); }
int pthread_key_create(unsigned* key, void (*end)(void*)) {
  return old_pthread_key_create(key, end);
}
int pthread_key_delete(unsigned key) { return old_pthread_key_delete(key); }
int pthread_setspecific(unsigned key, const void* value) {
  return old_pthread_setspecific(key, value);
}

/* Since glibc 2.33. Before, programs called these, with the version of the struct. */
struct stat64;
OLD(int, __xstat64, OLDEST, int version, const char* path, struct stat64* found);
OLD(int, __fxstat64, OLDEST, int version, int file, struct stat64* found);

int stat64(const char* path, struct stat64* found) {
  return old___xstat64(STRUCT_VERSION, path, found);
}
int fstat64(int file, struct stat64* found) { return old___fxstat64(STRUCT_VERSION, file, found); }

/* Since glibc 2.25, 2.28 and 2.30. Rust's standard library takes these by weak references, and
 * makes the same system calls where they are missing. But to the dynamic linker a weak reference's
 * version is a condition all the same. Systems without the numbers of the calls have no versions of
 * the names either. */
extern long syscall(long number, ...);

#ifdef SYS_getrandom
ssize_t getrandom(void* to, size_t bytes, unsigned flags) {
  return syscall(SYS_getrandom, to, bytes, flags);
}
#endif
#ifdef SYS_statx
struct statx;
int statx(int folder, const char* path, int flags, unsigned mask, struct statx* found) {
  return (int)syscall(SYS_statx, folder, path, flags, mask, found);
}
#endif
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* Since glibc 2.32. libstdc++ counts references without atomic instructions where it is true; no
 * TensorFlow has one thread. */
char __libc_single_threaded = 0;

/* Since GLIBCXX_3.4.29. The function of the C++ ABI throws the same std::bad_array_new_length. */
extern void __cxa_throw_bad_array_new_length(void) __attribute__((noreturn));

__attribute__((noreturn)) void _ZSt28__throw_bad_array_new_lengthv(void) {
  __cxa_throw_bad_array_new_length();
}

/* std::condition_variable::wait(std::unique_lock<std::mutex>&). Since GLIBCXX_3.4.30 a thread may
 * be cancelled in it; TensorFlow cancels none. */
OLD(void, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, "GLIBCXX_3.4.11",
    void* variable, void* lock);

void _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(void* variable, void* lock) {
  old__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(variable, lock);
}
