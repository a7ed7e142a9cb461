// Three plain loops; points of the faces are copied.
static float wide(const __nv_bfloat16* u, long at) { return __bfloat162float(u[at]); }

extern "C" void stencil_3d_bf16(__nv_bfloat16* u_new, const __nv_bfloat16* u_old, float r, int nx, int ny, int nz) {
    const long plane = (long)ny * nz;
    for (long i = 0; i < nx; ++i) {
        for (long j = 0; j < ny; ++j) {
            for (long k = 0; k < nz; ++k) {
                const long at = i * plane + j * nz + k;
                if (i == 0 || i == nx - 1 || j == 0 || j == ny - 1 || k == 0 || k == nz - 1) {
                    u_new[at] = u_old[at];
                    continue;
                }
                const float u = wide(u_old, at);
                const float around = wide(u_old, at - 1) + wide(u_old, at + 1) + wide(u_old, at - nz) + wide(u_old, at + nz) +
                                     wide(u_old, at - plane) + wide(u_old, at + plane);
                u_new[at] = __float2bfloat16(u + r * (around - 6.0f * u));
            }
        }
    }
}
