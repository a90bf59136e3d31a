//! Valid and invalid manifests.

use ctx_core::ErrorKind;

use super::*;

const HASH: &str = "00000000000000000000000000000000000000000000000000000000000000aa";

fn sound() -> String {
    format!(
        "manifest_version = 1\nname = \"demo\"\nversion = \"0.1.0\"\nlicense = \"MIT\"\n\
         about = \"a demo\"\ncontract = [\"1.0\"]\n\n[platform.any]\ncommand = \"demo.py\"\n\
         interpreter = \"python3\"\nargs = [\"-q\"]\nsha256 = \"{HASH}\"\n"
    )
}

#[test]
fn a_parsed_manifest_is_written_back_unchanged() {
    let manifest = Manifest::parse(&sound()).unwrap();
    assert_eq!((manifest.name.as_str(), manifest.slot), ("demo", Slot::ContextEngine));
    assert_eq!(manifest.file().unwrap().name(), "demo.py");
    assert!(manifest.check_contract().is_ok());
    let text = manifest.to_toml().unwrap();
    assert_eq!(Manifest::parse(&text).unwrap(), manifest, "{text}");
}

#[test]
fn an_invalid_manifest_is_refused_with_the_defect_and_its_place() {
    for (from, to, words) in [
        ("about", "abuot", "unknown field `abuot`"),
        ("about", "abuot", "line: 5"),
        ("args = ", "arg = ", "line: 11"),
        ("manifest_version = 1\n", "", "manifest_version"),
        ("manifest_version = 1\n", "manifest_version = 2\nnew_key = 1\n", "manifest version 2"),
        ("manifest_version = 1\n", "manifest_version = \"1\"\n", "line: 1"),
        ("name = \"demo\"\n", "", "missing field `name`"),
        ("name = \"demo\"", "name = \"../demo\"", "invalid engine name"),
        ("\"0.1.0\"", "\"\"", "'version'"),
        ("\"0.1.0\"", "\"\\u001b[2J\"", "'version'"),
        ("about = \"a demo\"", "about = \"a\\nb\"", "'about'"),
        ("about = \"a demo\"", "slot = \"brain\"", "unknown variant `brain`"),
        ("about = \"a demo\"", "base = \"demo\"", "'base'"),
        ("about = \"a demo\"", "name = \"again\"", "line: 5"),
        ("[\"1.0\"]", "[]", "'contract'"),
        ("[\"1.0\"]", "[\"one\"]", "'contract'"),
        ("[\"1.0\"]", "\"1.0\"", "line: 6"),
        ("platform.any", "platform.linux", "'platform'"),
        ("platform.any", "platform.linux-x86-64", "'platform'"),
        ("command = \"demo.py\"\n", "", "either a library or a command"),
        ("command = ", "library = \"a.so\"\ncommand = ", "either a library or a command"),
        ("command = ", "library = ", "without interpreter and args"),
        ("\"demo.py\"", "\"../demo.py\"", "plain name"),
        ("\"demo.py\"", "\"/bin/sh\"", "plain name"),
        ("\"demo.py\"", "\"..\"", "plain name"),
        ("\"demo.py\"", "\"a\\\\b\"", "plain name"),
        ("\"demo.py\"", "\"c:demo.py\"", "plain name"),
        ("\"demo.py\"", "\"-c\"", "plain name"),
        ("\"demo.py\"", "\"\"", "plain name"),
        ("\"python3\"", "\"./python3\"", "'platform.any.interpreter'"),
        ("aa\"", "a\"", "64 hexadecimal digits"),
        ("aa\"", "zz\"", "64 hexadecimal digits"),
        ("[platform.any]", "[platform.any", "line: 8"),
    ] {
        let text = sound().replacen(from, to, 1);
        assert_ne!(text, sound(), "{from}");
        let error = Manifest::parse(&text).unwrap_err();
        assert!(error.to_string().contains(words), "{from} -> {to}: {error}");
        assert!(error.hint_text().is_some(), "{error}");
    }
}

#[test]
fn arbitrary_text_is_refused_without_a_crash() {
    let deep = format!("manifest_version = 1\nname = {}", "[".repeat(100_000));
    let tables = format!("[{}]", vec!["a"; 10_000].join("."));
    for text in ["", "{}", "\0", "\u{feff}", "[[[[", "= 1", &deep, &tables] {
        let error = Manifest::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{text:.20}");
    }
}

#[test]
fn a_newer_contract_is_refused_and_a_newer_minor_version_is_not() {
    let check = |contract: &str| {
        let text = sound().replace("[\"1.0\"]", contract);
        Manifest::parse(&text).unwrap().check_contract()
    };
    for contract in ["[\"1.0\"]", "[\"1.7\"]", "[\"0.9\", \"1.0\", \"2.0\"]"] {
        assert!(check(contract).is_ok(), "{contract}");
    }
    let newer = check("[\"2.0\"]").unwrap_err();
    assert_eq!(newer.kind(), ErrorKind::Contract);
    assert!(newer.to_string().contains("2.0") && newer.to_string().contains("1.0"), "{newer}");
    assert!(newer.hint_text().unwrap().contains("newer ctx"));
    assert!(check("[\"0.9\"]").unwrap_err().hint_text().unwrap().contains("of the engine"));
}

#[test]
fn the_file_of_this_platform_is_preferred_to_any() {
    let own = format!("\n[platform.{}]\nlibrary = \"own\"\nsha256 = \"{HASH}\"\n", this_platform());
    let both = Manifest::parse(&(sound() + &own)).unwrap();
    assert_eq!(both.file().unwrap().name(), "own");
    let other = Manifest::parse(&sound().replace("any", "amiga-m68k")).unwrap();
    let error = other.file().unwrap_err();
    assert!(error.to_string().contains("amiga-m68k"), "{error}");
    assert!(error.to_string().contains(&this_platform()), "{error}");
}
