//! What cargo prints.

use std::fmt::Write;

use super::Shell;
use crate::sample::random::Random;
use crate::sample::workspace::Workspace;

const CRATES: [(&str, &str); 34] = [
    ("proc-macro2", "1.0.103"),
    ("unicode-ident", "1.0.22"),
    ("quote", "1.0.42"),
    ("syn", "2.0.110"),
    ("cfg-if", "1.0.4"),
    ("libc", "0.2.177"),
    ("pin-project-lite", "0.2.16"),
    ("bytes", "1.11.0"),
    ("serde_core", "1.0.228"),
    ("serde_derive", "1.0.228"),
    ("serde", "1.0.228"),
    ("mio", "1.1.0"),
    ("socket2", "0.6.1"),
    ("signal-hook-registry", "1.4.6"),
    ("parking_lot_core", "0.9.12"),
    ("lock_api", "0.4.14"),
    ("scopeguard", "1.2.0"),
    ("smallvec", "1.15.1"),
    ("parking_lot", "0.12.5"),
    ("tokio-macros", "2.6.0"),
    ("tokio", "1.48.0"),
    ("once_cell", "1.21.3"),
    ("tracing-core", "0.1.34"),
    ("tracing-attributes", "0.1.30"),
    ("tracing", "0.1.41"),
    ("winnow", "0.7.13"),
    ("toml_datetime", "0.7.3"),
    ("serde_spanned", "1.0.3"),
    ("toml_parser", "1.0.4"),
    ("toml", "0.9.8"),
    ("bitflags", "2.10.0"),
    ("rustix", "1.1.2"),
    ("fastrand", "2.3.0"),
    ("tempfile", "3.23.0"),
];

/// The lines of a build from nothing.
pub(crate) fn fresh_build() -> String {
    let mut out = String::new();
    for (name, version) in CRATES {
        let _ = writeln!(out, "   Compiling {name} v{version}");
    }
    out + "   Compiling crc-slice v0.3.1 (/home/mira/src/tidemark/vendor/crc-slice)\n   \
           Compiling tidemark v0.9.2 (/home/mira/src/tidemark)\n"
}

/// `cargo test` over `under`; each failure is the name of a test and what it said.
pub(crate) fn test(
    ws: &Workspace,
    under: &str,
    failures: &[(&str, &str)],
    random: &mut Random,
) -> Shell {
    let mut out = format!(
        "   Compiling tidemark v0.9.2 (/home/mira/src/tidemark)\n    Finished `test` profile [unoptimized + \
         debuginfo] target(s) in {}.{:02}s\n",
        random.range(2, 9),
        random.range(0, 100)
    );
    let mut failed = false;
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
        let mut bad = Vec::new();
        for (_, name) in &tests {
            let failure = failures.iter().find(|(test, _)| name.ends_with(test));
            let _ = writeln!(
                out,
                "test {name} ... {}",
                if failure.is_some() { "FAILED" } else { "ok" }
            );
            bad.extend(failure.map(|(_, said)| (name, *said)));
        }
        if !bad.is_empty() {
            failed = true;
            out.push_str("\nfailures:\n\n");
            for (name, said) in &bad {
                let _ = write!(
                    out,
                    "---- {name} stdout ----\n\nthread '{name}' ({}) panicked at {said}\nnote: run with \
                     `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n",
                    random.range(100_000, 999_999)
                );
            }
            out.push_str("\nfailures:\n");
            for (name, _) in &bad {
                let _ = writeln!(out, "    {name}");
            }
        }
        let _ = write!(
            out,
            "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in \
             0.{:02}s\n\n",
            if bad.is_empty() { "ok" } else { "FAILED" },
            tests.len() - bad.len(),
            bad.len(),
            random.range(10, 60)
        );
        if failed {
            out.push_str("error: test failed, to rerun pass `--test redelivery`\n");
            return Shell::failed(out, 101);
        }
    }
    Shell::ok(out)
}

/// An error of the compiler: where (path and a text on the line), code, message, note.
pub(crate) type Fault<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str);

/// `cargo check` with errors.
pub(crate) fn errors(ws: &Workspace, faults: &[Fault<'_>]) -> Shell {
    let mut out = "    Checking tidemark v0.9.2 (/home/mira/src/tidemark)\n".to_owned();
    for (path, needle, code, message, note) in faults {
        let (number, line) = ws.line(path, needle);
        let column = line.find(needle).unwrap_or(0);
        let margin = " ".repeat(number.to_string().len());
        let _ = write!(
            out,
            "error[{code}]: {message}\n{margin}--> {path}:{number}:{}\n{margin} |\n{number} | {line}\n{margin} | \
             {}{} {note}\n{margin} |\n",
            column + 1,
            " ".repeat(column),
            "^".repeat(needle.chars().count())
        );
        if *code == "E0061" {
            let (at, declared) = ws.line("src/queue.rs", "pub fn expired");
            let _ = write!(
                out,
                "note: method defined here\n{margin}--> src/queue.rs:{at}:12\n{margin} |\n{at} | {declared}\n{margin} \
                 |            ^^^^^^^\nhelp: provide the argument\n{margin} |\n{number} | {}\n{margin} | {}+++\n",
                line.replace("()", "(now)"),
                " ".repeat(column)
            );
        }
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "Some errors have detailed explanations: E0061, E0308.\nFor more information about an error, try `rustc \
         --explain E0061`.\nerror: could not compile `tidemark` (lib) due to {} previous errors",
        faults.len()
    );
    Shell::failed(out, 101)
}

/// `cargo clippy` that found nothing.
pub(crate) fn clippy_clean(random: &mut Random) -> Shell {
    Shell::ok(format!(
        "    Checking crc-slice v0.3.1 (/home/mira/src/tidemark/vendor/crc-slice)\n    Checking tidemark v0.9.2 \
         (/home/mira/src/tidemark)\n    Finished `dev` profile [unoptimized + debuginfo] target(s) in {}.{:02}s\n",
        random.range(3, 8),
        random.range(0, 100)
    ))
}
