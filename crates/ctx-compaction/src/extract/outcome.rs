//! What a program printed, in the one line that matters.

use ctx_core::Chars;
use ctx_core::text;

/// How much of an output is read: its beginning, and its end where the sums stand.
const HEAD: Chars = Chars(40_000);
const TAIL: Chars = Chars(20_000);

/// The line that says why something failed: the error itself, not the stack and not what the tools
/// around it say about the failure.
pub(super) fn root_cause(output: &str) -> Option<&str> {
    let mut best: Option<(u8, &str)> = None;
    let python = output.contains("Traceback (most recent call last)");
    for line in lines(output) {
        let rank = error_rank(line);
        // Compilers say first what broke; Python says it last.
        let better = best.is_none_or(|(found, _)| rank > found || (python && rank == found));
        if rank > 0 && better {
            best = Some((rank, line));
        }
    }
    best.map(|(_, line)| line)
}

/// The lines of the beginning and the end of an output, without colours, each of readable length.
fn lines(output: &str) -> impl DoubleEndedIterator<Item = &str> {
    let first = text::head(output, HEAD);
    let last = text::tail(output.get(first.len()..).unwrap_or_default(), TAIL);
    first
        .lines()
        .chain(last.lines())
        .map(str::trim)
        .filter(|line| !line.is_empty() && line.len() < 1_000)
}

/// Whether a line plainly is an error that a program printed.
pub(super) fn is_error(line: &str) -> bool {
    error_rank(line) == 4
}

fn error_rank(line: &str) -> u8 {
    const ECHOES: &[&str] = &[
        "could not compile",
        "aborting due to",
        "npm ERR! code",
        "npm ERR! A complete log",
        "ELIFECYCLE",
        "make: ***",
        "make[",
        "exit status",
        "exited with code",
        "0 errors",
        "no error",
        "errors: 0",
        "0 failed",
        "failed: 0",
        "For more information about this error",
    ];
    if ECHOES.iter().any(|echo| line.contains(echo)) {
        return 0;
    }
    let lower = line.to_lowercase();
    let starts = |list: &[&str]| list.iter().any(|start| lower.starts_with(start));
    let contains = |list: &[&str]| list.iter().any(|part| lower.contains(part));
    if is_exception(line)
        || starts(&["error[", "fatal:", "fatal error", "panic:", "error: "])
        || contains(&[": error ts", ": error: ", "panicked at", "error ts", "segmentation fault"])
        || contains(&["no such file or directory", "command not found", "permission denied"])
        || contains(&[
            "cannot find module",
            "module not found",
            "connection refused",
            "undefined: ",
        ])
        || contains(&["错误：", "错误:"])
    {
        return 4;
    }
    if contains(&["assertionerror", "expected ", "--- fail", "cannot ", "undefined", "not found"])
        || contains(&["error:", "failed to ", "失败", "报错", "timed out", "timeout"])
    {
        return 3;
    }
    if contains(&["fail", "error", "✗", "✖", "×"]) {
        return 2;
    }
    u8::from(contains(&["warning", "denied", "invalid", "unexpected"]))
}

/// `TypeError: x`, `java.lang.IllegalStateException: x`, `Uncaught Error: x`.
fn is_exception(line: &str) -> bool {
    let Some((head, rest)) = line.split_once(':') else { return false };
    let word = head.rsplit(' ').next().unwrap_or(head);
    !rest.trim().is_empty()
        && head.len() < 100
        && (word.ends_with("Error") || word.ends_with("Exception"))
        && word.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '_')
}

/// The line that sums up a run of tests, of a compiler or of a linter.
pub(super) fn sum(output: &str) -> Option<&str> {
    let sums = || lines(output).rev().take(60).filter(|line| is_sum(line));
    // One package that fails says more than the last that passes.
    sums().find(|line| says_failed(line)).or_else(|| sums().next())
}

fn is_sum(line: &str) -> bool {
    let lower = line.to_lowercase();
    let counted = lower.chars().any(|c| c.is_ascii_digit());
    (counted
        && ["passed", "failed", " passing", " failing", "tests:", "test result", "通过", "失败"]
            .iter()
            .any(|word| lower.contains(word)))
        || [
            "ok  \t",
            "fail\t",
            "--- fail",
            "build failed",
            "build succeeded",
            "compiled successfully",
        ]
        .iter()
        .any(|word| lower.starts_with(word))
        || ["0 issues", "no issues", "0 errors", "all checks passed", "found 0 ", "no errors"]
            .iter()
            .any(|word| lower.contains(word))
        || (lower.starts_with("finished ") && lower.contains("target(s)"))
        || (counted && lower.contains(" error") && lower.starts_with("found "))
        || lower == "pass"
        || lower == "fail"
}

/// Whether a line that sums up says that something failed.
pub(super) fn says_failed(line: &str) -> bool {
    let lower = line.to_lowercase();
    let zero =
        ["0 failed", "failed: 0", "0 failing", "0 errors", "no errors", "0 failures", "0 error"];
    let none = zero.iter().any(|word| {
        lower.find(word).is_some_and(|at| !lower[..at].ends_with(|c: char| c.is_ascii_digit()))
    });
    !none && ["fail", "error", "失败"].iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_cause_is_one_line() {
        for (output, expected) in [
            (
                "   Compiling x\nerror[E0308]: mismatched types\n  --> src/a.rs:3:5\nerror: could not compile `x`",
                Some("error[E0308]: mismatched types"),
            ),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: first\nDuring handling\nKeyError: 'x'",
                Some("KeyError: 'x'"),
            ),
            (
                "node:fs:443\n  return binding\n\nError: ENOENT: no such file or directory, open '/a'\n    at readFileSync (node:fs)",
                Some("Error: ENOENT: no such file or directory, open '/a'"),
            ),
            (
                "src/a.ts(3,1): error TS2304: Cannot find name 'x'.\nnpm ERR! code ELIFECYCLE",
                Some("src/a.ts(3,1): error TS2304: Cannot find name 'x'."),
            ),
            ("all fine", None),
        ] {
            assert_eq!(root_cause(output), expected);
        }
    }

    #[test]
    fn sums_are_found_and_understood() {
        for (output, line, failed) in [
            (
                "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored",
                "test result: ok. 3 passed; 0 failed; 0 ignored",
                false,
            ),
            (
                "test result: FAILED. 1 passed; 10 failed",
                "test result: FAILED. 1 passed; 10 failed",
                true,
            ),
            ("=== 2 failed, 5 passed in 0.3s ===", "=== 2 failed, 5 passed in 0.3s ===", true),
            ("ok  \tgithub.com/x/y\t0.3s", "ok  \tgithub.com/x/y\t0.3s", false),
        ] {
            assert_eq!(sum(output), Some(line));
            assert_eq!(says_failed(line), failed, "{line}");
        }
        assert_eq!(sum("nothing"), None);
    }
}
