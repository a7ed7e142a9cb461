// Two plain loops; points of the boundary are copied.
extern "C" void stencil_2d(float* u_new, const float* u_old, float r, int nx, int ny) {
    for (long i = 0; i < nx; ++i) {
        for (long j = 0; j < ny; ++j) {
            const long at = i * ny + j;
            if (i == 0 || i == nx - 1 || j == 0 || j == ny - 1) {
                u_new[at] = u_old[at];
                continue;
            }
            const float u = u_old[at];
            const float around = u_old[at - 1] + u_old[at + 1] + u_old[at - ny] + u_old[at + ny];
            u_new[at] = u + r * (around - 4.0f * u);
        }
    }
}
