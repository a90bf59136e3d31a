// The random numbers that Rust's standard library imports, for versions of wine without this DLL. It lies
// beside ctx.exe only where wine runs it, and no release contains it.
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) {
    return RtlGenRandom(data, (ULONG)size);
}
