//! The page's structure, its size, and that text of a log stays text.

use super::page::{self, About, Seal};
use crate::search_command::logs::take_complete;
use query::overview::{Finished, Overview};
use query::summary::Summary;
use query::{Assembler, Dialect, Event};

const BYTES_MAX: usize = 2_000_000;
/// Elements without an end.
const VOID: [&str; 1] = ["meta"];

fn summary(log: &str) -> (Summary, Finished) {
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    let (mut summary, mut overview) = (Summary::default(), Overview::default());
    let mut add = |event: &Event| {
        summary.add(event);
        overview.add(event.view());
    };
    for line in log.lines() {
        assembler.add(line.as_bytes());
        take_complete(&mut assembler, &mut add);
    }
    assembler.finish();
    take_complete(&mut assembler, &mut add);
    (summary, overview.finish())
}

fn page((summary, overview): &(Summary, Finished), about: &About) -> String {
    page::page(summary, overview, about)
}

fn about(log: &str) -> About {
    About {
        logs: vec![log.to_owned()],
        seal: Seal::Absent,
        made_ms: 1_795_229_629_000,
    }
}

fn call(number: u64, exe: &str, key: &str, file: &str) -> String {
    let ms = 1_795_229_629_000 + number * 731;
    let stamp = format!("msg=audit({}.{:03}:{})", ms / 1000, ms % 1000, number + 7);
    let pid = 300 + number;
    format!(
        "type=SYSCALL {stamp}: arch=c000003e syscall=257 success=no exit=-13 a0=1 a1=2 a2=0 a3=0 items=1 \
         ppid={} pid={pid} auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 \
         ses=3 comm=\"x\" exe={exe} key={key}\u{1d}AUID={exe} UNIT={key}\n\
         type=EXECVE {stamp}: argc=1 a0={exe}\n\
         type=CWD {stamp}: cwd={file}\n\
         type=PATH {stamp}: item=0 name={file} inode=1 nametype=NORMAL\n",
        pid - number % 50
    )
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}

/// The tags of a page in their order; checks that each element ends where it should.
fn tags(page: &str) -> Vec<String> {
    let mut rest = page.strip_prefix("<!doctype html>").expect("a doctype");
    let (mut tags, mut open) = (Vec::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("a tag that ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        let name = tag.split([' ', '/']).find(|word| !word.is_empty());
        let name = name.expect("a tag with a name").to_owned();
        if tag.starts_with('/') {
            assert_eq!(
                open.pop(),
                Some(name),
                "before {}",
                &rest[..rest.len().min(80)]
            );
            continue;
        }
        if !tag.ends_with('/') && !VOID.contains(&&*name) && name != "br" {
            open.push(name);
        }
        tags.push(tag.to_owned());
        if tag == "style" {
            rest = &rest[rest.find("</style>").expect("an end of the style")..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
    tags
}

#[test]
fn a_log_cannot_bring_markup_into_the_page() {
    let attacks = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "'--></title></style><svg onload=alert(1)>",
        "</summary></details><iframe srcdoc=x>",
        "&lt;b&gt;\u{202e}\u{0}\u{1b}[2J",
    ];
    let mut log = String::new();
    for (number, attack) in attacks.iter().enumerate() {
        let text = hex(attack);
        log += &call(number as u64, &text, &text, &hex(&format!("/{attack}")));
        let quoted = attack.replace('"', "");
        log += &format!(
            "node={} type=DAEMON_ERR msg=audit(1795229640.000:{number}): op=events-lost lost=3 \
             cause={}:3 res=failed\n",
            quoted.replace(' ', ""),
            quoted.replace(' ', "")
        );
    }
    let harmless = page(&summary(&call(1, "\"a\"", "\"a\"", "\"/a\"")), &about("a"));
    let known: Vec<String> = tags(&harmless).iter().map(|tag| name_of(tag)).collect();
    let page = page(&summary(&log), &about("<script>alert(1)</script>"));
    for tag in tags(&page) {
        let name = name_of(&tag);
        let is_known = known.contains(&name) || ["caption", "path", "i", "br"].contains(&&*name);
        assert!(is_known && name != "script", "{tag}");
        assert!(!tag.contains("alert") && !tag.contains("onerror"), "{tag}");
    }
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains(['\u{202e}', '\u{1b}', '\u{0}']));
}

fn name_of(tag: &str) -> String {
    tag.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_runs_no_script() {
    let page = page(
        &summary(&call(1, "\"/bin/a\"", "\"k\"", "\"/etc/x\"")),
        &about("audit.log"),
    );
    let policy = page.find("default-src 'none'").expect("a policy");
    assert!(policy < page.find("<style>").expect("a style"));
    for tag in tags(&page) {
        for word in [
            "src=", "script", "http:", "https:", "url(", "style=", "link",
        ] {
            assert!(!tag.contains(word) || tag.contains("default-src"), "{tag}");
        }
        if let Some(at) = tag.find("href=") {
            assert!(tag[at..].starts_with("href=#"), "{tag}");
        }
    }
    assert!(!page.contains("@import") && !page.contains("url("));
}

#[test]
fn the_page_has_language_headings_in_order_and_names_for_its_pictures() {
    let page = page(
        &summary(&call(1, "\"/bin/a\"", "\"k\"", "\"/etc/x\"")),
        &about("audit.log"),
    );
    let mut last = 0;
    let mut headings = 0;
    for tag in tags(&page) {
        let name = name_of(&tag);
        let level = name
            .strip_prefix('h')
            .and_then(|level| level.parse::<u32>().ok());
        if let Some(level) = level {
            assert!(level <= last + 1, "h{level} below h{last}");
            last = level;
            headings += 1;
        }
        if name == "svg" {
            assert!(
                tag.contains("aria-label=") || tag.contains("aria-hidden"),
                "{tag}"
            );
        }
        if let Some(target) = tag
            .strip_prefix("a ")
            .and_then(|rest| rest.split("href=#").nth(1))
        {
            assert!(page.contains(&format!("id={target}")), "{tag}");
        }
    }
    assert!(page.contains("<html lang=en>") && headings > 10);
}

#[test]
fn losses_gaps_and_the_seal_are_on_the_first_screen() {
    let mut log = call(1, "\"/bin/a\"", "\"k\"", "\"/etc/x\"");
    log += "type=DAEMON_ERR msg=audit(1795229999.000:12): op=events-lost lost=41 total=41 \
            cause=ring_full:41 res=failed\n";
    log += &call(1000, "\"/bin/a\"", "\"k\"", "\"/etc/x\"");
    let page = page(&summary(&log), &about("audit.log"));
    let first = &page[..page.find("id=time").expect("the next heading")];
    for words in [
        "41 lost",
        "ring_full:41",
        "997 missing",
        "not sealed",
        "longest time without events",
    ] {
        assert!(first.contains(words), "{words}: {first}");
    }
}

#[test]
fn the_page_is_bounded_whatever_the_log() {
    let mut log = String::new();
    for number in 0..4000 {
        let quotes = "\"<&>".repeat(40);
        let (user, key) = (number % 20, number % 40);
        log += &call(
            number,
            &hex(&format!("{user}{quotes}{}", number % 31)),
            &hex(&format!("{key}{quotes}")),
            &hex(&format!("/{number}{quotes}")),
        );
    }
    let page = page(&summary(&log), &about(&"<".repeat(9000)));
    tags(&page);
    assert!(page.len() > 200_000, "{} bytes", page.len());
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
}

#[test]
fn an_empty_log_has_a_page() {
    let page = page(&summary(""), &about("audit.log"));
    tags(&page);
    assert!(page.contains("no events"));
}

#[test]
fn times_and_numbers_at_the_ends_of_their_ranges_are_drawn() {
    let mut log = String::new();
    for (number, sec) in ["0", "9223372036854775000", "1795229629", "99999999999"]
        .iter()
        .enumerate()
    {
        let stamp = format!("msg=audit({sec}.999:{})", u64::MAX - number as u64);
        log += &call(1, "\"/bin/a\"", "\"k\"", "\"/etc/x\"")
            .replace("msg=audit(1795229629.731:8)", &stamp)
            .replace("exit=-13", "exit=-9223372036854775808");
    }
    let page = page(&summary(&log), &about("audit.log"));
    tags(&page);
    assert!(page.contains("<strong>4</strong>"));
}

#[test]
fn charts_share_their_time_axis() {
    let log = "\
type=SYSCALL msg=audit(1700000000.100:1): arch=c000003e syscall=59 success=yes exit=0 a0=1 a1=2 a2=3 a3=4 items=0 \
ppid=1 pid=2 auid=1000 uid=0 tty=pts1 ses=1 comm=\"who\" exe=\"/usr/bin/whoami\" key=\"k\"\n\
type=USER_LOGIN msg=audit(1710000000.100:2): pid=5 uid=0 auid=1000 ses=4 msg='op=login exe=\"/usr/sbin/sshd\" res=success'";
    let page = page(&summary(log), &about("x"));
    let axes: Vec<&str> = page
        .split("<div class=x>")
        .skip(1)
        .filter_map(|rest| rest.split("</div>").next())
        .collect();
    assert!(axes.len() >= 2, "{}", axes.len());
    assert!(axes.iter().all(|axis| *axis == axes[0]), "{axes:?}");
}

#[test]
fn printed_pages_have_their_times() {
    let style = include_str!("style.css");
    for rule in style.split("@media ").skip(1) {
        // A sheet of paper is narrower than many windows.
        let condition = rule.split('{').next().unwrap_or_default();
        let is_for_narrow_windows = condition.starts_with('(') && condition.contains("width");
        assert!(!is_for_narrow_windows, "{condition}");
    }
}
