//! Parallel work on many messages.

use std::sync::LazyLock;

/// Applies `each` to every item, on several cores for large inputs.
pub(super) fn parallel_map<T: Sync, R: Send>(
    all: &[T],
    bytes: impl Fn(&T) -> usize,
    each: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    /// Hashing and parsing this many bytes takes much longer than starting a thread.
    const MUCH: usize = 128 << 10;
    const MOST_CORES: usize = 4;
    let total: usize = all.iter().map(bytes).sum();
    // The query is slow: it reads system files.
    static CORES: LazyLock<usize> = LazyLock::new(|| {
        std::thread::available_parallelism().map_or(1, usize::from).min(MOST_CORES)
    });
    let parts = (total / MUCH).clamp(1, *CORES);
    if parts == 1 {
        return all.iter().map(each).collect();
    }
    let (first, rest) = all.split_at(all.len().div_ceil(parts));
    let work = &|part: &[T]| -> Vec<R> { part.iter().map(&each).collect() };
    std::thread::scope(|scope| {
        let others = rest.chunks(first.len()).map(|part| (part, scope.spawn(move || work(part))));
        let others: Vec<_> = others.collect();
        let mut done = work(first);
        for (part, other) in others {
            // Work that panicked is repeated here, so that the panic reaches the caller.
            done.extend(other.join().unwrap_or_else(|_| work(part)));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_results_are_complete_and_in_order() {
        for count in [0, 1, 2, 3, 7, 1_000] {
            for bytes in [0, 1 << 10, 1 << 20] {
                let all: Vec<usize> = (0..count).collect();
                let done = parallel_map(&all, |_| bytes, |n| n * 2);
                assert_eq!(done, all.iter().map(|n| n * 2).collect::<Vec<_>>(), "{count} {bytes}");
            }
        }
    }
}
