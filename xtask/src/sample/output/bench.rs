//! What a benchmark prints.

use std::fmt::Write;

use crate::sample::random::Random;

/// Four benchmarks; `change` is how much slower than before, in tenths of a percent.
pub(crate) fn criterion(change: i64, random: &mut Random) -> String {
    let mut out = String::new();
    for (name, micros) in
        [("push_batch_64", 305), ("pull_one", 11), ("ack_one", 8), ("expire_10k", 4_930)]
    {
        let base = micros * 1_000 + random.range(0, 900) as i64;
        let mean = base + base * change / 1_000;
        let show = |ns: i64| format!("{}.{:03} µs", ns / 1_000, ns % 1_000);
        let shift = |tenths: i64| format!("{:+}.{}%", tenths / 10, (tenths % 10).abs());
        let verdict = match change {
            ..=-10 => "Performance has improved.",
            10.. => "Performance has regressed.",
            _ => "No change in performance detected.",
        };
        let _ = write!(
            out,
            "Benchmarking {name}: Warming up for 3.0000 s\nBenchmarking {name}: Collecting 100 samples in estimated \
             5.{:04} s\nBenchmarking {name}: Analyzing\n{name:<24}time:   [{} {} {}]\n{:24}change: [{} {} {}] (p = \
             0.{:02} {} 0.05)\n{:24}{verdict}\nFound {} outliers among 100 measurements ({}.00%)\n  {} high mild\n\n",
            random.range(10, 9_999),
            show(mean - mean / 90),
            show(mean),
            show(mean + mean / 80),
            "",
            shift(change - 9),
            shift(change),
            shift(change + 11),
            if change.abs() < 10 { random.range(20, 80) } else { 0 },
            if change.abs() < 10 { ">" } else { "<" },
            "",
            4,
            4,
            4
        );
    }
    out
}
