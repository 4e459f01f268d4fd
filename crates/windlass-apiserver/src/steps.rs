//! Steps of walks over objects, counted in tests.
//!
//! A walk that visits a value more often than once or twice is slow only where objects are deep or
//! wide, and a clock on a busy machine cannot show it. So each walk reports its steps here, and
//! tests bound them by the size of the object. Outside of tests nothing is counted.

#[cfg(test)]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// One value was visited.
#[inline]
pub(crate) fn step() {
    steps(1);
}

/// So many values were visited, or bytes of a path written.
#[inline]
#[allow(clippy::missing_const_for_fn, reason = "in tests it counts")]
pub(crate) fn steps(count: usize) {
    #[cfg(test)]
    TAKEN.with(|taken| taken.set(taken.get() + count as u64));
    #[cfg(not(test))]
    let _ = count;
}

/// What `run` gives, and the steps this thread took meanwhile.
#[cfg(test)]
pub(crate) fn counted<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let before = taken();
    let result = run();
    (result, taken() - before)
}

/// The steps this thread took so far.
#[cfg(test)]
pub(crate) fn taken() -> u64 {
    TAKEN.with(std::cell::Cell::get)
}

#[cfg(test)]
mod tests;
