{{- define "strings" }}
abbrev: {{ abbrev 8 .Values.text }} {{ abbrev 3 "abcdef" }} {{ abbrev 30 "short" }}
abbrevboth: {{ abbrevboth 5 10 "1234 5678 9123 4567" }} {{ abbrevboth 2 10 "1234 5678 9123" }}
trunc: {{ trunc 5 "hello world" }}|{{ trunc -5 "hello world" }}|{{ trunc 50 "short" }}|{{ trunc 2 "日本" | b64enc }}
trim: {{ trim "  x  " }}|{{ trimAll "$" "$5.00$" }}|{{ trimall "-" "--a--" }}|{{ trimSuffix "-" "hello-" }}|{{ trimPrefix "-" "-hello" }}
upper: {{ upper "aé" }} {{ lower "AÉ" }} {{ title "hello big-world it's x_y" }} {{ untitle "Hello World" }}
substr: {{ substr 0 5 "hello world" }}|{{ substr -1 3 "hello" }}|{{ substr 2 -1 "hello" }}
repeat: {{ repeat 3 "ab" }}|{{ repeat 0 "x" }}
nospace: {{ nospace "h e l l o" }} {{ initials "First Try now" }} {{ swapcase "This Is A.Test" }}
cases: {{ snakecase "FirstName" }} {{ snakecase "HTTPServer99Foo" }} {{ snakecase "a-b c.d" }} {{ kebabcase "FirstName" }} {{ kebabcase "user_id2Go" }} {{ camelcase "http_server" }} {{ camelcase "a-bC_d" }}
cases2: {{ range list "HTTPServer" "Build123Test" "some-kebab-case" "one TWO Three" "x1y2" "ABC" "aBCd" "__a__b" "1st" "v1beta1" }}{{ snakecase . }}|{{ kebabcase . }}|{{ camelcase . }} {{ end }}
wrap: {{ wrap 10 "these are some words to wrap" }}
wrapWith: {{ wrapWith 5 "\t" "Hello World and more" }}|{{ wrapWith 3 "" "abcdefg" }}
contains: {{ contains "cat" "catch" }} {{ hasPrefix "cat" "catch" }} {{ hasSuffix "h" "catch" }}
quote: {{ quote "a\"b" 1 nil true 1.5 "é" "\x00" }} {{ squote "it's" 2 nil }} {{ quote .Values.list }} {{ quote .Values.map }}
cat: {{ cat "hello" 1 nil true .Values.float }}
indent: {{ indent 4 "a\nb\n" }}|{{ nindent 2 "a\nb" }}
replace: {{ replace " " "-" "I am Henry" }} {{ replace "" "-" "abc" }}
plural: {{ plural "one" "many" 1 }} {{ plural "one" "many" 2 }}
toString: {{ toString 5 }} {{ toString .Values.float }} {{ toString true }} {{ toString .Values.list }} {{ toString .Values.nothing }}
toStrings: {{ toStrings .Values.list }} {{ toStrings "x" }} {{ list 1 nil "x" | toStrings | len }}
join: {{ join "-" .Values.list }} {{ join "," 5 }} {{ join "," (list 1 "a" nil 2.5) }}
split: {{ $s := split "/" "a/b/c" }}{{ $s._0 }} {{ $s._2 }} {{ $s._9 }} {{ len $s }} {{ (splitn "/" 2 "a/b/c")._1 }} {{ splitList "," "x,y,,z" }} {{ splitList "" "abc" }}
sortAlpha: {{ sortAlpha .Values.list }} {{ sortAlpha "x" }} {{ sortAlpha (list 10 9 "a") }}
hello: {{ hello }}
b64: {{ b64enc "hi there" }} {{ b64dec "aGkgdGhlcmU=" }} {{ b64dec "%%%" }} {{ b64dec "YQ" }} {{ b32enc "hi there" }} {{ b32dec "NBUSA5DIMVZGK===" }}
paths: {{ base "a/b.c" }} {{ dir "/a/b/c" }} {{ clean "a/../b//c/." }} {{ ext "x.tar.gz" }} {{ isAbs "/a" }} {{ osBase "a/b" }} {{ osDir "a/b" }} {{ osClean "./a" }} {{ osExt "a.b" }} {{ osIsAbs "a" }} {{ base "" }} {{ base "///" }} {{ dir "" }}
printf: {{ printf "%s|%q|%v|%d|%5d|%-5d|%05d|%x|%X|%o|%b|%c|%U|%t|%e|%.2f|%8.3f|%g|%T|%%|%p" "s" "q" .Values.list 1 2 3 4 255 255 8 5 65 66 true 1.5 2.345 3.14159 1e21 .Values.map "x" }}
printf2: {{ printf "%d %s" "x" 1 }} {{ printf "%s" }} {{ printf "%d" 1 2 }} {{ printf "%v %v" .Values.nothing nil }} {{ printf "%[2]d %[1]d" 1 2 }} {{ printf "%*d" 5 1 }} {{ printf "%+d % d %#x %#v %+v" 1 2 3 "a" .Values.map }} {{ printf "%!" }} {{ printf "%z" 1 }} {{ printf "%6.2f|%-8s|%8s|%.2s" 1.234 "ab" "cd" "wxyz" }} {{ printf "%s" .Values.list }} {{ printf "%d" .Values.big }} {{ printf "%s %v" .Values.float .Values.big }}
print: {{ print "a" 1 2 "b" true .Values.nothing }} {{ println "x" 1 }}
html: {{ html "<a href='x'>\"&</a>" }} {{ js "it's <b>\"x\"</b>\n" }} {{ urlquery "a b&c=d/é" }}
len: {{ len "é" }} {{ len .Values.list }} {{ len .Values.map }}
slice: {{ slice .Values.list 1 2 }}
numbers: {{ .Values.big }} {{ .Values.float }} {{ .Values.one }} {{ 1000000 }} {{ 1e6 }} {{ 1.0 }} {{ 'a' }} {{ 0x1F }} {{ 1_000 }} {{ -3 }}
{{- end }}
