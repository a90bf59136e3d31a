//! Models that fail.

use std::sync::Arc;
use std::time::Duration;

use ctx_compaction::{Config, Rung, Strategy};
use ctx_core::{ErrorKind, Timer, Tokens};
use ctx_testkit::Reply;

use super::{GOOD, calls, climb, job, model};

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

#[test]
fn each_fault_leads_on_as_it_should() {
    let nonsense = "Lorem ipsum dolor sit amet, consectetur adipiscing elit.";
    let refused = "I'm sorry, but I cannot help with that.";
    let echo = "[e:00000000] [User]: fix the retry loop in src/http.rs, step 0\n\n\
        [e:00000001] [Assistant]: fixed the loop, the tests pass, step 1\n\n\
        [Assistant tool calls]: read(path=\"src/http.rs\")";
    let stripped = format!("<think>{}</think>\n- retry loop", "the retry loop, hm. ".repeat(20));
    // The first model's replies in order, and the expected calls; the second model is faithful.
    let cases: [(&str, Vec<Reply>, &[&str]); 14] = [
        ("a good answer ends it", vec![text(GOOD)], &["a: summary"]),
        (
            "a passing error is tried again",
            vec![Reply::Retryable(ErrorKind::Upstream), text(GOOD)],
            &["a: summary!", "a: summary"],
        ),
        (
            "three times at most",
            vec![Reply::Retryable(ErrorKind::Upstream); 3],
            &["a: summary!", "a: summary!", "a: summary!", "b: summary"],
        ),
        (
            "an error that stays is not tried again",
            vec![Reply::Error(ErrorKind::Upstream)],
            &["a: summary!", "b: summary"],
        ),
        (
            "nor is a model that may not be used",
            vec![Reply::Error(ErrorKind::Capability)],
            &["a: summary!", "b: summary"],
        ),
        (
            "nor an overflow",
            vec![Reply::Error(ErrorKind::Overflow)],
            &["a: summary!", "b: summary"],
        ),
        (
            "an empty answer is asked for once more",
            vec![text(""), text(GOOD)],
            &["a: summary!", "a: summary"],
        ),
        (
            "and not a third time",
            vec![text(""), text(" \n\u{200b}\n")],
            &["a: summary!", "a: summary!", "b: summary"],
        ),
        (
            "nonsense is no answer",
            vec![text(nonsense), text(refused)],
            &["a: summary!", "a: summary!", "b: summary"],
        ),
        (
            "nor is the prompt itself",
            vec![text(echo), text("<conversation>\n[User]: fix the retry loop\n</conversation>")],
            &["a: summary!", "a: summary!", "b: summary"],
        ),
        (
            "nor what cleaning leaves of thoughts and lists",
            vec![text(&stripped), text(GOOD)],
            &["a: summary!", "a: summary"],
        ),
        (
            "a cut-off answer is asked for in halves",
            vec![Reply::CutOff(GOOD.into()), text(GOOD), text(GOOD)],
            &["a: summary!", "a: summary, chunk 1 of 2", "a: summary, chunk 2 of 2"],
        ),
        (
            "and only once",
            vec![Reply::CutOff(GOOD.into()), Reply::CutOff(GOOD.into())],
            &["a: summary!", "a: summary, chunk 1 of 2!", "b: summary"],
        ),
        (
            "one hidden in thoughts is empty",
            vec![text("<think>the retry loop</think>"), text("<think>the retry loop")],
            &["a: summary!", "a: summary!", "b: summary"],
        ),
    ];
    for (what, replies, expected) in cases {
        let (a, b) = (Arc::new(model("a").replies(replies)), Arc::new(model("b")));
        let (draft, log, _) = climb(&job(Config::default()), &[&a, &b]);
        assert_eq!(calls(&log), expected, "{what}");
        for (asked, before) in a.asked().iter().skip(1).zip(&log.calls) {
            // An error may be transient; a rejected answer is rejected again.
            let was_refused = before.error.as_ref().is_some_and(|why| {
                why.starts_with("the answer") && !why.contains("cut off")
                    || why.contains("declined")
            });
            let is_told = asked.prompt.contains("Your last answer could not be used: ");
            assert_eq!(is_told, was_refused, "{what}: {:?}", before.error);
        }
        let draft = draft.unwrap();
        let last = expected.last().unwrap().split(':').next().unwrap();
        assert_eq!((draft.model.as_str(), draft.rung), (last, Rung::Model), "{what}");
        assert!(draft.text.contains("retry loop"), "{what}: {}", draft.text);
        assert_eq!(log.notes.len(), usize::from(last == "b"), "{what}: {:?}", log.notes);
    }
}

#[test]
fn what_cannot_pass_is_not_tried_again_whatever_the_provider_says() {
    for kind in [ErrorKind::Overflow, ErrorKind::Capability] {
        let (a, b) = (Arc::new(model("a").replies([Reply::Retryable(kind)])), Arc::new(model("b")));
        let (_, log, _) = climb(&job(Config::default()), &[&a, &b]);
        assert_eq!(calls(&log), ["a: summary!", "b: summary"], "{kind:?}");
    }
    let a = Arc::new(model("a").replies([Reply::Retryable(ErrorKind::Cancelled)]));
    let b = Arc::new(model("b"));
    let (draft, log, _) = climb(&job(Config::default()), &[&a, &b]);
    assert_eq!((draft, calls(&log)), (None, vec!["a: summary!".to_owned()]), "nobody waits for it");
}

#[test]
fn waits_double_and_what_the_provider_asks_for_is_waited() {
    let once = Reply::Retryable(ErrorKind::Upstream);
    let a = Arc::new(model("a").replies([once.clone(), once, text(GOOD)]));
    let (_, _, timer) = climb(&job(Config::default()), &[&a]);
    let waited = timer.elapsed().as_millis();
    assert!((1_200..=1_800).contains(&waited), "500 and 1,000 ms, a fifth either way: {waited}");

    let asked = Duration::from_secs(40);
    let a = Arc::new(model("a").replies([Reply::RetryAfter(asked), text(GOOD)]));
    let (draft, _, timer) = climb(&job(Config::default()), &[&a]);
    assert_eq!((draft.unwrap().model.as_str(), timer.elapsed()), ("a", asked));

    // Longer than the time limit: the next model is called at once.
    let a = Arc::new(model("a").replies([Reply::RetryAfter(Duration::from_secs(400))]));
    let b = Arc::new(model("b"));
    let (draft, _, timer) = climb(&job(Config::default()), &[&a, &b]);
    assert_eq!((draft.unwrap().model.as_str(), timer.elapsed()), ("b", Duration::ZERO));
}

#[test]
fn an_answer_ten_times_too_long_is_summarised_again_and_then_trimmed() {
    let line =
        |n| format!("- the retry loop of module{n} was fixed in src/file{n}.rs in step {n}\n");
    let long: String = (0..600).map(line).collect();
    let long = format!("## Progress\n{long}\n## Next Steps\n1. Run the tests of the loop");
    let budget = Tokens(1_000);
    // Shortened on request.
    let a = Arc::new(model("a").replies([text(&long), text(GOOD)]));
    let (draft, log, _) = climb(&job(Config::default()), &[&a]);
    assert_eq!(calls(&log), ["a: summary", "a: summary, shorter"]);
    assert_eq!(draft.unwrap().text, GOOD);
    assert!(a.asked().iter().all(|request| request.max_tokens <= budget));
    // Never shortened: whole lines are removed, the last section stays.
    let a = Arc::new(model("a").otherwise(text(&long)));
    let (draft, log, _) = climb(&job(Config::default()), &[&a]);
    assert!(log.calls.len() <= 3, "rounds are bounded: {:?}", calls(&log));
    let kept = draft.unwrap().text;
    assert!(kept.contains("in step 0\n") && kept.ends_with("Run the tests of the loop"), "{kept}");
    assert!(kept.lines().all(|line| long.lines().any(|l| l == line)), "a line was cut");
}

#[test]
fn when_every_model_fails_there_is_no_draft_and_the_log_says_why() {
    for strategy in [Strategy::Rolling, Strategy::MultiPart, Strategy::Single] {
        let a = Arc::new(model("a").otherwise(Reply::Error(ErrorKind::Capability)));
        let b = Arc::new(model("b").otherwise(text("")));
        let config = Config { strategy, ..Config::default() };
        let (draft, log, _) = climb(&job(config), &[&a, &b]);
        assert_eq!(draft, None);
        assert!(log.calls.iter().all(|call| !call.ok && call.error.is_some()));
        assert_eq!(
            log.notes,
            ["a: the model fails as scripted", "b: the answer is empty"],
            "{strategy:?}"
        );
    }
}

#[test]
fn a_prompt_that_overflowed_everywhere_is_tried_with_less() {
    let overflow = Reply::Error(ErrorKind::Overflow);
    let a = Arc::new(model("a").with_window(Tokens(16_000)).replies([overflow]));
    let mut job = job(Config { strategy: Strategy::Single, ..Config::default() });
    job.messages = super::said(super::talk(600));
    job.sizes.clear();
    let (draft, log, _) = climb(&job, &[&a]);
    assert_eq!(draft.unwrap().rung, Rung::Model, "nothing had to be left out");
    let first = a.asked().remove(0).prompt.len();
    assert!(a.asked().iter().skip(1).all(|request| request.prompt.len() < first / 2));
    assert!(log.calls.len() > 3, "{:?}", calls(&log));
}
