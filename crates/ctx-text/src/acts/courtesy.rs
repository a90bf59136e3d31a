//! Greetings and thanks.

use crate::WordList;

/// Words that only greet, thank or praise.
static WORDS: WordList = WordList::new("courtesy.words");

/// Clauses that only greet or thank, and polite questions that need no answer.
static PHRASES: WordList = WordList::new("courtesy.phrases");

/// Words that may be followed by a name: "Hey Mel!", "Thanks, Caroline!".
static GREETINGS: WordList = WordList::new("courtesy.greetings");

/// Whether a sentence only greets, thanks or praises, without a request or a statement.
pub fn is_courtesy(sentence: &str) -> bool {
    if sentence.len() > 120 {
        return false;
    }
    let bare = sentence.trim_matches(|c: char| !c.is_alphanumeric());
    let plain = bare.replace('’', "'");
    let clauses = plain.split(['，', ',', '!', '！', '。', '~']).map(str::trim);
    let clauses = clauses.filter(|clause| !PHRASES.contains(&clause.to_lowercase()));
    let words =
        clauses.flat_map(|clause| clause.split(|c: char| !c.is_alphanumeric() && c != '\''));
    let (mut greets, mut names) = (false, 0);
    for word in words.filter(|word| !word.is_empty()) {
        let lower = word.to_lowercase();
        if WORDS.contains(lower.as_str()) {
            greets |= GREETINGS.contains(lower.as_str());
        } else if greets && names < 2 && is_name(word) {
            names += 1;
        } else {
            return false;
        }
    }
    true
}

/// Whether a word is written like a person's name.
pub fn is_name(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_uppercase)
        && chars.clone().next().is_some()
        && chars.all(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_and_thanks_are_told_from_asks() {
        for text in [
            "Hi there!",
            "Thanks!",
            "thank you so much",
            "Hey Mel!",
            "Good to see you!",
            "How have you been?",
            "Thanks for your help, Caroline!",
            "你好",
            "谢谢！",
            "你好，谢谢。",
            "Good morning everyone",
            "Bye!",
        ] {
            assert!(is_courtesy(text), "{text}");
        }
        for text in [
            "fix it",
            "Hey, fix Foo.",
            "Thanks, now run the tests",
            "Add Redis",
            "你好，帮我修一下登录",
            "谢谢，继续修",
            "How are you going to test it?",
            "ls",
            "Hi, NASA here",
            "Anna",
        ] {
            assert!(!is_courtesy(text), "{text}");
        }
    }
}
