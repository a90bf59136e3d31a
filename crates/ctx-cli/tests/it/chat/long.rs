//! Fifty turns in a window that is too small for them.

use super::{Talk, pi};

const TURNS: usize = 50;

#[test]
fn fifty_turns_by_script_keep_within_the_window_and_open_in_pi() {
    let talk = Talk::new();
    let (mut told, mut compacted) = (String::new(), 0);
    for n in 1..=TURNS {
        let message = format!("turn {n}: go on");
        let chain: &[&str] = match n {
            30 => &["--model", "openai/broken", "--model", "openai/good"],
            _ => &["--model", "openai/good"],
        };
        let rest = ["--tools", "read,bash", "--verbose", "--prompt", message.as_str()];
        let ran = talk.run(&[chain, &rest].concat());
        assert_eq!(ran.code, Some(0), "{n}: {}", ran.stderr);
        assert!(ran.stdout.starts_with(&format!("answer {n}: ")), "{n}: {}", ran.stdout);
        assert_eq!(ran.stdout.matches("answer ").count(), 1, "{n}: the answer and nothing else");
        if n == 30 {
            let words = "openai/good answers instead of openai/broken";
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
        }
        compacted += ran.stderr.matches("🧹 Auto-compaction complete").count();
        told.push_str(&ran.stderr);
        if n == 25 {
            let ran = talk.run(&["--model", "openai/good", "-p", "/compact the steps"]);
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            assert!(
                ran.stdout.starts_with("**Compact Complete!**\n\n- Messages compacted: "),
                "{}",
                ran.stdout
            );
        }
    }
    talk.check(TURNS);
    assert!(compacted >= 2, "{compacted} compactions were reported: {told}");
    assert_eq!(
        talk.compactions(),
        compacted + 1,
        "every stored compaction was reported, and one was requested"
    );
    assert!(talk.notes().contains("the user wants to go on"), "a flush stored it");
    assert!(told.contains("· bash seq ") && told.contains("· read notes.txt"), "{told}");
    pi::opens(&talk.transcript(), "answer 50");
}
