//! Steps of walks over objects, counted in tests.
//!
//! A walk that visits a value more often than once or twice is slow only where objects are deep or
//! wide, and a clock on a busy machine cannot show it. So each walk reports its steps here, and
//! tests bound them by the size of the object. A release build counts nothing.

#[cfg(debug_assertions)]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One value was visited.
#[inline]
pub fn step() {
    steps(1);
}

/// So many values were visited, or bytes of a path written.
#[inline]
#[allow(clippy::missing_const_for_fn, reason = "in debug builds it counts")]
pub fn steps(count: usize) {
    #[cfg(debug_assertions)]
    TAKEN.with(|taken| taken.set(taken.get() + count as u64));
    #[cfg(not(debug_assertions))]
    let _ = count;
}

/// What `run` gives, and the steps this thread took meanwhile.
pub fn counted<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let before = taken();
    let result = run();
    (result, taken() - before)
}

/// The steps this thread took so far; none in a release build.
pub fn taken() -> u64 {
    #[cfg(debug_assertions)]
    return TAKEN.with(std::cell::Cell::get);
    #[cfg(not(debug_assertions))]
    0
}
