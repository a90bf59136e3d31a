//! Greetings and thanks.

/// Words that only greet, thank or praise.
const WORDS: &[&str] = &[
    "thanks",
    "thank",
    "you",
    "great",
    "good",
    "nice",
    "perfect",
    "cool",
    "awesome",
    "lgtm",
    "hi",
    "hello",
    "hey",
    "very",
    "so",
    "much",
    "wow",
    "excellent",
    "job",
    "work",
    "looks",
    "that's",
    "it",
    "well",
    "done",
    "ok",
    "okay",
    "there",
    "everyone",
    "again",
    "morning",
    "evening",
    "afternoon",
    "bye",
    "goodbye",
    "cheers",
    "welcome",
    "you're",
    "lot",
    "too",
    "to",
    "see",
    "meet",
    "a",
    "day",
    "have",
    "weekend",
    "night",
    "take",
    "care",
    "guys",
    "folks",
    "all",
    "for",
    "the",
    "your",
    "help",
    "yo",
    "really",
    "appreciated",
    "many",
    "my",
    "friend",
];

/// What people ask without wanting to know.
const PHRASES: &[&str] = &[
    "how are you",
    "how are you doing",
    "how have you been",
    "how's it going",
    "how is it going",
    "what's up",
    "what's new",
    "how are things",
    "long time no see",
    "i appreciate it",
    "much appreciated",
    "how are you today",
];

/// Words behind which a name may stand: "Hey Mel!", "Thanks, Caroline!".
const GREETINGS: &[&str] =
    &["hi", "hello", "hey", "thanks", "bye", "goodbye", "dear", "morning", "you"];

const CHINESE: &[&str] = &[
    "谢谢",
    "多谢",
    "感谢",
    "非常感谢",
    "谢谢你",
    "谢谢您",
    "谢谢啦",
    "谢啦",
    "谢了",
    "你好",
    "您好",
    "你好呀",
    "你好啊",
    "大家好",
    "早上好",
    "下午好",
    "晚上好",
    "早安",
    "晚安",
    "嗨",
    "哈喽",
    "再见",
    "拜拜",
    "辛苦了",
    "很好",
    "不错",
    "太好了",
    "好的",
    "好",
    "最近怎么样",
    "最近好吗",
    "你好吗",
    "好久不见",
];

/// Whether a sentence only greets, thanks or praises: nothing is asked for, and nothing told.
pub(crate) fn is_courtesy(sentence: &str) -> bool {
    if sentence.len() > 120 {
        return false;
    }
    let bare = sentence.trim_matches(|c: char| !c.is_alphanumeric());
    let mut clauses = bare.split(['，', ',', '!', '！', '。', '~']).map(str::trim);
    if clauses.all(|clause| clause.is_empty() || CHINESE.contains(&clause)) {
        return true;
    }
    let plain = bare.replace('’', "'");
    if PHRASES.iter().any(|phrase| plain.eq_ignore_ascii_case(phrase)) {
        return true;
    }
    let words = plain.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let (mut greets, mut names) = (false, 0);
    for word in words.filter(|word| !word.is_empty()) {
        let lower = word.to_lowercase();
        if WORDS.contains(&lower.as_str()) {
            greets |= GREETINGS.contains(&lower.as_str());
        } else if greets && names < 2 && is_name(word) {
            names += 1;
        } else {
            return false;
        }
    }
    true
}

/// Whether a word is written as names of people are.
pub(crate) fn is_name(word: &str) -> bool {
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
