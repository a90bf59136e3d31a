//! Templates with placeholders, and random values to fill them.

use ctx_testkit::Random;

/// A text with marked ranges.
pub(crate) struct Sample {
    pub(crate) text: String,
    /// The marked texts. Either all are secrets, or no text is a secret.
    pub(crate) marked: Vec<String>,
}

/// Fills `frames` `times` times. Frames are separated by `---`; text between « and » is marked;
/// `{hex:40}` becomes forty random hexadecimal digits, and so on.
pub(crate) fn samples(frames: &str, times: usize, seed: u64) -> Vec<Sample> {
    let mut random = Random::seeded(seed);
    let frames: Vec<&str> = frames.split("\n---\n").collect();
    let filled = (0..times).flat_map(|_| frames.iter());
    filled.map(|frame| sample(&fill(frame, &mut random))).collect()
}

fn sample(filled: &str) -> Sample {
    let mut sample = Sample { text: String::new(), marked: Vec::new() };
    let mut rest = filled;
    while let Some((before, after)) = rest.split_once('«') {
        let (marked, after) = after.split_once('»').expect("each « has a »");
        sample.text.push_str(before);
        sample.text.push_str(marked);
        sample.marked.push(marked.to_owned());
        rest = after;
    }
    sample.text.push_str(rest);
    sample
}

fn fill(frame: &str, random: &mut Random) -> String {
    let mut out = String::new();
    let mut rest = frame;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        let inside = rest[at + 1..].split('}').next().unwrap_or_default();
        match value(inside, random) {
            Some(value) => {
                out.push_str(&value);
                rest = &rest[at + inside.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[at + 1..];
            }
        }
    }
    out + rest
}

const DIGITS: &str = "0123456789";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const WORDS: [&str; 12] = [
    "copper", "lantern", "orbit", "velvet", "thicket", "harbor", "pickle", "summit", "gravel",
    "walnut", "meadow", "falcon",
];

fn value(name: &str, random: &mut Random) -> Option<String> {
    let (kind, length) = name.split_once(':').unwrap_or((name, "0"));
    let length: usize = length.parse().ok()?;
    let any = |alphabet: &str, random: &mut Random| -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[random.below(letters.len())]).collect()
    };
    let b62 = format!("{DIGITS}{LOWER}{UPPER}");
    Some(match kind {
        "hex" => any("0123456789abcdef", random),
        "hexu" => any("0123456789ABCDEF", random),
        "dec" => format!("{}{}", 1 + random.below(9), &any(DIGITS, random)[1..]),
        "upper32" => any("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", random),
        "b36" => any(&format!("{DIGITS}{LOWER}"), random),
        "b58" => any(&b62.replace(['0', 'O', 'I', 'l'], ""), random),
        "b62" => any(&b62, random),
        "b64" => any(&format!("{b62}+/"), random),
        "b64u" => any(&format!("{b62}-_"), random),
        "special" => any(&format!("{b62}!@#%^&*()-_=+[]<>:,.?"), random),
        "pem" => {
            let body = any(&format!("{b62}+/"), random);
            let lines: Vec<&str> =
                (0..length).step_by(64).map(|at| &body[at..length.min(at + 64)]).collect();
            lines.join("\n")
        }
        "word" => WORDS[random.below(WORDS.len())].to_owned(),
        "uuid" => {
            let hex: String =
                (0..32).map(|_| char::from_digit(random.below(16) as u32, 16).unwrap()).collect();
            format!(
                "{}-{}-4{}-a{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[13..16],
                &hex[17..20],
                &hex[20..]
            )
        }
        // Typical passwords: a word and a number, letters replaced by similar characters, or
        // generated.
        "pw" => {
            let word = WORDS[random.below(WORDS.len())];
            let number = 10 + random.below(9_900);
            match random.below(5) {
                0 => format!("{}{}!", word.replacen('e', "3", 1), number),
                1 => format!("{}-{}-{number}", WORDS[random.below(WORDS.len())], word),
                2 => format!("{}{}#{number}", word[..1].to_uppercase(), &word[1..]),
                3 => (0..14).map(|_| b62.as_bytes()[random.below(62)] as char).collect(),
                _ => format!("{number}{}$Xq", word.to_uppercase()),
            }
        }
        _ => return None,
    })
}
