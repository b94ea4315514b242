// Compiled only so that the unit tests share one precompiled header (CMakeLists.txt).
