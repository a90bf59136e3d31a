//! Measures redaction: secrets planted in realistic text and code, and lookalikes that are not
//! secrets.

// Test helpers may unwrap, and the test prints its measurements.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod corpus;

use corpus::samples;
use ctx_redact::Redactor;

const SECRETS: &str = include_str!("secrets.txt");
const LOOKALIKES: &str = include_str!("lookalikes.txt");
/// Lines of this repository and similar ones, without a secret.
const OWN: &str = include_str!("own.txt");

fn redact(text: &str) -> String {
    Redactor::builtin().redact(text).text.into_owned()
}

/// Whether enough of a secret is left to guess or use it.
fn leaks(redacted: &str, secret: &str) -> bool {
    let lines = secret.split('\n').filter(|line| line.len() >= 4);
    lines.into_iter().any(|line| {
        redacted.contains(line) || (line.len() >= 16 && redacted.contains(&line[line.len() / 2..]))
    })
}

#[test]
fn secrets_are_found_and_what_only_looks_like_them_stays() {
    let planted = samples(SECRETS, 3, 1);
    let others = samples(LOOKALIKES, 4, 2);
    let (mut secrets, mut found, mut lookalikes, mut wrong) = (0, 0, 0, 0);
    for sample in &planted {
        let redacted = redact(&sample.text);
        for secret in &sample.marked {
            secrets += 1;
            if leaks(&redacted, secret) {
                println!("missed {secret:?}\n  in {:?}", sample.text);
            } else {
                found += 1;
            }
        }
    }
    for sample in &others {
        let redacted = redact(&sample.text);
        for lookalike in &sample.marked {
            lookalikes += 1;
            if !redacted.contains(lookalike) {
                wrong += 1;
                println!("redacted {lookalike:?}\n  in {:?}\n  as {redacted:?}", sample.text);
            }
        }
    }
    let recall = found as f64 / secrets as f64;
    let precision = found as f64 / (found + wrong) as f64;
    println!(
        "{secrets} secrets, recall {recall:.4}; {lookalikes} look-alikes, precision {precision:.4}"
    );
    assert!(secrets >= 300 && lookalikes >= 300);
    assert!(recall >= 0.98, "recall {recall}");
    assert!(precision >= 0.95, "precision {precision}");
}

#[test]
fn redacting_a_text_again_changes_nothing() {
    for sample in samples(SECRETS, 2, 3).iter().chain(&samples(LOOKALIKES, 1, 4)) {
        let once = redact(&sample.text);
        assert_eq!(redact(&once), once, "of {}", sample.text);
    }
}

#[test]
fn no_line_of_this_repository_is_redacted() {
    let own: Vec<&str> = OWN.lines().collect();
    assert!(own.len() >= 60);
    for line in own {
        assert_eq!(redact(line), line);
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = ["config", "json", "library", "memory", "privacy", "runtime", "server"];
    let docs = docs.map(|page| format!("docs/{page}.md"));
    for file in ["Cargo.lock", "README.md"].into_iter().chain(docs.iter().map(String::as_str)) {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let changed = redact(&text);
        let lines = text.lines().zip(changed.lines());
        let wrong: Vec<_> = lines.filter(|(before, after)| before != after).collect();
        assert!(wrong.is_empty() && text == changed, "{file}: {wrong:?}");
    }
}
