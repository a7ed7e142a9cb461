// Three plain loops; points of the faces are copied.
extern "C" void stencil_3d(float* u_new, const float* u_old, float r, int nx, int ny, int nz) {
    const long plane = (long)ny * nz;
    for (long i = 0; i < nx; ++i) {
        for (long j = 0; j < ny; ++j) {
            for (long k = 0; k < nz; ++k) {
                const long at = i * plane + j * nz + k;
                if (i == 0 || i == nx - 1 || j == 0 || j == ny - 1 || k == 0 || k == nz - 1) {
                    u_new[at] = u_old[at];
                    continue;
                }
                const float u = u_old[at];
                const float around = u_old[at - 1] + u_old[at + 1] + u_old[at - nz] + u_old[at + nz] +
                                     u_old[at - plane] + u_old[at + plane];
                u_new[at] = u + r * (around - 6.0f * u);
            }
        }
    }
}
