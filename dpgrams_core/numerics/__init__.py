"""Pure functions of arrays: kernels, densities, surfaces, sketches, bumps and ridges. Draws nothing."""
