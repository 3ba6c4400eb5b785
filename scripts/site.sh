#!/usr/bin/env bash
# The pages of docs as a site in build/site, with a search. Needs Python 3.11 or later with venv; MKDOCS is another mkdocs.
# The pages are those of the tree: what they link to lies beside them, at the same paths. A broken link is an error.
#   scripts/site.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "${MKDOCS:-}" ]; then
	env=${PYTHON_ENV:-${TMPDIR:-/tmp}/zarrdb-python-$(id -u)}-site
	[ -x "$env/bin/mkdocs" ] || { python3 -m venv "$env" && "$env/bin/pip" install --quiet --disable-pip-version-check mkdocs==1.6.1; }
	MKDOCS=$env/bin/mkdocs
fi
{
	git ls-files -- '*.md' 'docs/images/*' bench/RESULTS.svg LICENSE
	# what pages link to: a source file, or all files of a folder
	git ls-files -- '*.md' | while read -r page; do
		{ grep -oE '\]\([^)#: ]+' "$page" || true; } | cut -c3- | while read -r link; do
			realpath -q --relative-to=. "$(dirname "$page")/$link" || true
		done
	done | sort -u | grep -v '^\.\.' | xargs git ls-files --
} | sort -u | tar -cf - -T - | { mkdir "$work/pages" && tar -xf - -C "$work/pages"; }
# A link to a folder leads to the list of its files.
find "$work/pages" -mindepth 1 -type d | while read -r folder; do
	[ -e "$folder/README.md" ] || { echo "# ${folder#"$work"/pages/}" && echo && (cd "$folder" && ls | sed 's/.*/* [&](&)/'); } >"$folder/README.md"
done
cat >"$work/mkdocs.yml" <<END
site_name: zarrdb
docs_dir: $work/pages
site_dir: $PWD/build/site
use_directory_urls: false
theme: {name: readthedocs, highlightjs: false}
markdown_extensions: [tables, fenced_code, sane_lists, {toc: {permalink: true}}]
validation: {nav: {omitted_files: ignore}, links: {anchors: ignore, unrecognized_links: ignore}}
nav:
$(awk '/^## /{print "  - \"" substr($0,4) "\":"} match($0,/^\| *\[[^]]*\]\([^)#]*\.md\)/){l=substr($0,RSTART,RLENGTH); sub(/.*\(/,"",l); sub(/\)/,"",l); if(l!~/^\.\./)l="docs/"l; else sub(/^\.\.\//,"",l); print "    - " l}' docs/README.md)
END
"$MKDOCS" build --strict --clean -f "$work/mkdocs.yml" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "build/site/index.html: $(find build/site -name '*.html' | wc -l) pages"
