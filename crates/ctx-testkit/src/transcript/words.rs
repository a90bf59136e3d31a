//! Texts of people, models and tools.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Random;

/// The contents of `data/transcript.toml`.
#[derive(Deserialize)]
struct Words {
    asks: Vec<String>,
    constraints: Vec<String>,
    reports: Vec<String>,
    exact: Vec<String>,
    fillers: Vec<String>,
    hostile: Vec<String>,
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    toml::from_str(include_str!("../../data/transcript.toml"))
        .expect("data/transcript.toml is TOML")
});

/// Names of tools, with an argument for each.
pub(super) const TOOLS: &[(&str, &str)] = &[
    ("read", "path"),
    ("bash", "command"),
    ("edit", "path"),
    ("write", "path"),
    ("grep", "pattern"),
    ("read_file", "file_path"),
    ("web_fetch", "url"),
];

/// Returns a request of a user.
pub(super) fn ask(random: &mut Random) -> String {
    let mut text = filled(random, &WORDS.asks);
    if random.once_in(4) {
        text = format!("{text} {}", filled(random, &WORDS.constraints));
    }
    if random.once_in(25) {
        text = format!("{text}\n\n{}", one(random, &WORDS.hostile));
    }
    text
}

/// Returns a text of a model, of one to four sentences.
pub(super) fn report(random: &mut Random) -> String {
    let sentences: Vec<_> =
        (0..random.within(1..=4)).map(|_| filled(random, &WORDS.reports)).collect();
    sentences.join(" ")
}

/// Returns an argument of a tool call.
pub(super) fn argument(random: &mut Random) -> &'static str {
    one(random, &WORDS.exact)
}

/// Returns about this many bytes of output, mostly of one kind.
pub(super) fn output(random: &mut Random, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 256);
    if random.once_in(2) {
        text.push_str(&filled(random, &WORDS.reports));
        text.push('\n');
    }
    while text.len() < bytes {
        let unit = one(random, &WORDS.fillers);
        let left = bytes - text.len();
        // Several blocks of one kind at once, so that long outputs need few random numbers.
        let times = random
            .within(1..=40)
            .max(bytes / 12 / unit.len().max(1))
            .min(left / unit.len().max(1) + 1);
        text.extend(std::iter::repeat_n(unit, times));
        if random.once_in(6) {
            text.push_str(one(random, &WORDS.exact));
            text.push('\n');
        }
        if random.once_in(60) {
            text.push_str(one(random, &WORDS.hostile));
            text.push('\n');
        }
    }
    text
}

/// Returns the text of an earlier summary.
pub(super) fn summary(random: &mut Random) -> String {
    let (goal, rule, done, context) = (
        filled(random, &WORDS.asks),
        filled(random, &WORDS.constraints),
        filled(random, &WORDS.reports),
        one(random, &WORDS.exact),
    );
    let mut text = format!(
        "## Goal\n{goal}\n\n## Constraints & Preferences\n- {rule}\n\n## Progress\n### Done\n- [x] \
         {done}\n\n## Key Decisions\n- **Retry**: three times\n\n## Next Steps\n1. Go on\n\n\
         ## Critical Context\n- {context}"
    );
    if random.once_in(2) {
        text.push_str("\n\n<read-files>\nsrc/lib.rs\nREADME.md\n</read-files>");
        text.push_str("\n\n<modified-files>\nsrc/main.rs\n</modified-files>");
    }
    text
}

fn filled(random: &mut Random, patterns: &'static [String]) -> String {
    let pattern = one(random, patterns);
    pattern.replace("{}", one(random, &WORDS.exact))
}

fn one(random: &mut Random, of: &'static [String]) -> &'static str {
    of.get(random.below(of.len())).map_or("", String::as_str)
}
