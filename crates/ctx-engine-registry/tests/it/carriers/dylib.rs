use super::*;

#[test]
fn a_library_answers_and_its_answers_are_released() {
    let engine = Engine::library(library(&[]));
    for _ in 0..3 {
        assert_eq!(engine.call("hello").unwrap()["unreleased"], 0);
    }
}

#[test]
fn an_oversized_answer_is_refused_and_released() {
    let engine = Engine::library(library(&[]));
    let fault = engine.call("huge").unwrap_err();
    assert_eq!(fault.to_string(), "the engine's answer is larger than 33554432 bytes");
    assert_eq!(engine.call("hello").unwrap()["unreleased"], 0);
}

#[test]
fn an_invalid_answer_is_garbage_and_the_engine_continues() {
    let engine = Engine::library(library(&[]));
    let fault = engine.call("garbage").unwrap_err().to_string();
    assert!(fault.contains("output: not JSON"), "{fault}");
    assert_eq!(engine.fault("nothing", LONG), "garbage");
    assert!(engine.call("hello").is_ok());
}

#[test]
fn a_library_that_breaks_the_abi_is_not_called_again() {
    for (verb, fault) in
        [("panicked", "panicked"), ("unknown_status", "garbage"), ("nowhere", "garbage")]
    {
        let engine = Engine::library(library(&[]));
        assert_eq!(engine.fault(verb, LONG), fault);
        assert!(engine.caller.is_lost());
        assert_eq!(engine.fault("hello", LONG), "lost");
    }
}

#[test]
fn host_services_are_available_only_during_a_call() {
    let engine = Engine::library(library(&[]));
    let counted = engine.call("count").unwrap();
    assert_eq!(counted, json!({"status": 0, "said": {"id": 5, "reply": {"tokens": [2]}}}));
    let refused = engine.call("ask_elsewhere").unwrap();
    assert_eq!(refused, json!({"thread": 2, "create": 2}));
    assert_eq!(engine.call("count").unwrap()["status"], 0);
}

#[test]
fn a_library_that_ignores_a_cancel_is_abandoned() {
    let engine = Engine::library(library(&[]));
    assert_eq!(engine.fault("until_cancelled", SHORT), "deadline");
    assert_eq!(engine.fault("late", SHORT), "deadline", "a late answer does not count");
    assert!(engine.call("hello").is_ok());
    assert_eq!(engine.fault("stuck", SHORT), "deadline");
    assert_eq!(engine.fault("hello", LONG), "lost");
}

#[test]
fn a_cancel_function_that_never_returns_blocks_no_caller() {
    let engine = Engine::library(library(&["TOLD_CANCEL_HANGS"]));
    assert_eq!(engine.fault("until_cancelled", SHORT), "deadline");
    assert!(engine.caller.is_lost());
}

#[test]
fn an_older_table_without_cancel_and_destroy_is_accepted() {
    let old = library(&["TOLD_SIZE=offsetof(ctx_engine_table_v1,cancel)"]);
    let engine = Engine::library(old);
    assert!(engine.call("hello").is_ok());
    assert_eq!(engine.fault("until_cancelled", SHORT), "deadline", "it cannot be cancelled");
}

#[test]
fn files_that_are_no_engine_library_are_refused_with_the_reason() {
    let text = tempfile::NamedTempFile::with_suffix(".so").unwrap().into_temp_path();
    std::fs::write(&text, "a text").unwrap();
    let nothing = tempfile::NamedTempFile::with_suffix(".so").unwrap().into_temp_path();
    std::fs::remove_file(&nothing).unwrap();
    for (library, why) in [
        (library(&["TOLD_NO_ENTRY"]), "missing entry point ctx_engine_v1"),
        (library(&["TOLD_NO_TABLE"]), "returned no table"),
        (library(&["TOLD_NO_ENGINE"]), "could not create its engine: status 1"),
        (library(&["TOLD_SIZE=16"]), "invalid table: 16 bytes, at least 40 are required"),
        (library(&["TOLD_ABI=2"]), "unsupported ABI version 2, the host's is 1"),
        (text, "cannot load the library"),
        (nothing, "cannot load the library"),
    ] {
        let error = Dylib::open(&library).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        let engine = Engine::library(library);
        assert_eq!(engine.fault("hello", LONG), "unopened");
        assert_eq!(engine.fault("hello", LONG), "lost");
    }
}
