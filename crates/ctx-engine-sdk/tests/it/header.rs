//! Checks with a C compiler that `include/ctx_engine.h` and `abi` agree.

use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;

use ctx_engine_sdk::abi::{
    ABI, Buffer, Bytes, ENTRY, EngineTable, HostTable, MISUSED, OK, PANICKED,
};

macro_rules! layout {
    ($out:ident, $rust:ty, $c:literal, $($field:ident),+) => {
        writeln!($out, "_Static_assert(sizeof({}) == {}, \"size\");", $c, size_of::<$rust>()).unwrap();
        $(writeln!(
            $out,
            "_Static_assert(offsetof({}, {field}) == {}, \"{field}\");",
            $c,
            offset_of!($rust, $field),
            field = stringify!($field),
        ).unwrap();)+
    };
}

#[test]
fn the_header_has_the_layout_of_the_crate() {
    let mut c = String::from("#include \"ctx_engine.h\"\n");
    layout!(c, Bytes, "ctx_bytes", data, len);
    layout!(c, Buffer, "ctx_buffer", data, len, capacity);
    layout!(c, HostTable, "ctx_host_v1", size, context, call, release);
    layout!(
        c,
        EngineTable,
        "ctx_engine_table_v1",
        size,
        abi,
        create,
        call,
        release,
        cancel,
        destroy
    );
    for (name, value) in [("CTX_OK", OK), ("CTX_PANICKED", PANICKED), ("CTX_MISUSED", MISUSED)] {
        writeln!(c, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    writeln!(c, "_Static_assert(CTX_ENGINE_ABI == {ABI}, \"abi\");").unwrap();
    writeln!(c, "const ctx_engine_table_v1 *(*entry)(void) = {ENTRY};").unwrap();

    let room = tempfile::tempdir().unwrap();
    let source = room.path().join("layout.c");
    std::fs::write(&source, c).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
    let output = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", include])
        .arg(&source)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
