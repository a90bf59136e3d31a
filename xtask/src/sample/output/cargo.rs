//! What cargo prints.

use std::fmt::Write;

use super::Shell;
use crate::sample::random::Random;
use crate::sample::workspace::Workspace;

/// The lines of a build from nothing.
pub(super) const FRESH_BUILD: &str = include_str!("../../../assets/fresh-build.txt");

/// `cargo test` over `under`; the failure is the name of a test and what it said.
pub(super) fn test(
    ws: &Workspace,
    under: &str,
    failure: Option<(&str, &str)>,
    random: &mut Random,
) -> Shell {
    let mut out = format!(
        "   Compiling tidemark v0.9.2 (/home/mira/src/tidemark)\n    Finished `test` profile [unoptimized + \
         debuginfo] target(s) in {}.{:02}s\n",
        random.range(2, 9),
        random.range(0, 100)
    );
    for (title, part) in [
        ("unittests src/lib.rs (target/debug/deps/tidemark", "src/"),
        ("tests/redelivery.rs (target/debug/deps/redelivery", "tests/redelivery"),
    ] {
        if !part.starts_with(under) && !under.starts_with(part.trim_end_matches('/')) {
            continue;
        }
        let tests = ws.tests(if under.len() > part.len() { under } else { part });
        let _ = write!(
            out,
            "     Running {title}-{:016x})\n\nrunning {} tests\n",
            random.next(),
            tests.len()
        );
        let fails = |name: &str| failure.filter(|(test, _)| name.ends_with(test));
        for name in &tests {
            let verdict = if fails(name).is_some() { "FAILED" } else { "ok" };
            let _ = writeln!(out, "test {name} ... {verdict}");
        }
        let bad = tests.iter().find_map(|name| Some((name, fails(name)?.1)));
        if let Some((name, said)) = bad {
            let _ = write!(
                out,
                "\nfailures:\n\n---- {name} stdout ----\n\nthread '{name}' ({}) panicked at {said}\nnote: run with \
                 `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\nfailures:\n    {name}\n",
                random.range(100_000, 999_999)
            );
        }
        let failed = usize::from(bad.is_some());
        let _ = write!(
            out,
            "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in \
             0.{:02}s\n\n",
            if bad.is_some() { "FAILED" } else { "ok" },
            tests.len() - failed,
            random.range(10, 60)
        );
        if bad.is_some() {
            out.push_str("error: test failed, to rerun pass `--test redelivery`\n");
            return Shell { text: out, code: 101 };
        }
    }
    Shell { text: out, code: 0 }
}

/// `cargo clippy` that found nothing.
pub(super) fn clippy_clean(random: &mut Random) -> String {
    format!(
        "    Checking crc-slice v0.3.1 (/home/mira/src/tidemark/vendor/crc-slice)\n    Checking tidemark v0.9.2 \
         (/home/mira/src/tidemark)\n    Finished `dev` profile [unoptimized + debuginfo] target(s) in {}.{:02}s\n",
        random.range(3, 8),
        random.range(0, 100)
    )
}
