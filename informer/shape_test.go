// SPDX-FileCopyrightText: The Watchkeeper Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type (
	named struct {
		Name  string `json:"name"`
		Plain int
		Skip  string            `json:"-"`
		Count int               `json:"count,string"`
		Next  *named            `json:"next"`
		List  []named           `json:"list"`
		Map   map[string]*named `json:"map"`
		Any   any               `json:"any"`
		Own   folding           `json:"own"`
		Keys  map[string]string `json:"keys"`
		Long  string            `json:"kiſ"`
		inner
		*Pointed
		Tagged `json:"tagged"`
	}
	inner struct {
		Inner string `json:"inner"`
		Name  string `json:"NAME"` // another name
	}
	Pointed struct {
		Deep string `json:"deep"`
		Both string `json:"both"`
	}
	Tagged struct {
		Both string `json:"both"`
	}
	// folding decodes itself.
	folding struct{ Value string }
	// hidden has the name "Name" twice, so that neither is set, and "NAME".
	hidden struct {
		One
		Two
		Upper string `json:"NAME"`
	}
	One     struct{ Name string }
	Two     struct{ Name string }
	loop    []loop
	pointer *pointer
)

func (f *folding) UnmarshalJSON(text []byte) error {
	var v struct{ Value string }
	err := json.Unmarshal(text, &v)
	f.Value = v.Value
	return err
}

// TestJSONNames: names match exactly, at every level, and of several that are equal the last
// one counts.
func TestJSONNames(t *testing.T) {
	for text, want := range map[string]named{
		`{"Name":"upper","name":"lower","NAmE":"mixed"}`:                          {Name: "lower"},
		`{"NAME":"other","name":"a"}`:                                             {Name: "a", inner: inner{Name: "other"}},
		`{"name":"a","name":"b"}`:                                                 {Name: "b"},
		`{"plain":1,"Plain":2,"PLAIN":3}`:                                         {Plain: 2},
		`{"Skip":"a","skip":"b","-":"c"}`:                                         {},
		`{"Count":"5","count":"6","COUNT":7}`:                                     {Count: 6},
		`{"next":{"Name":"a","next":{"nAme":"b"}},"Next":{"name":"c"}}`:           {Next: &named{Next: &named{}}},
		`{"list":[{"nAme":"a"},{"name":"b","Name":"c"}],"LIST":null}`:             {List: []named{{}, {Name: "b"}}},
		`{"map":{"Name":{"Name":"a","name":"b"},"name":null}}`:                    {Map: map[string]*named{"Name": {Name: "b"}, "name": nil}},
		`{"any":{"Name":"a","name":"b"},"keys":{"A":"1","a":"2"}}`:                {Any: map[string]any{"Name": "a", "name": "b"}, Keys: map[string]string{"A": "1", "a": "2"}},
		`{"own":{"VALUE":"a"},"OWN":{"value":"b"}}`:                               {Own: folding{"a"}},
		`{"Inner":"a","INNER":"b"}`:                                               {},
		`{"inner":"a"}`:                                                           {inner: inner{Inner: "a"}},
		`{"Deep":"a"}`:                                                            {},
		`{"deep":"a","Both":"b"}`:                                                 {Pointed: &Pointed{Deep: "a"}},
		`{"tagged":{"both":"a","Both":"b"},"Tagged":{"both":"c"}}`:                {Tagged: Tagged{"a"}},
		`{"\u004eame":"a","n\u0061me":"b","\u006eAME":"c"}`:                       {Name: "b"},
		`{"kis":"a","KIS":"b","\u212ai\u017f":"c"}`:                               {},
		`{"ki\u017f":"a","KIſ":"b"}`:                                              {Long: "a"},
		` { "Name" : "a" , "name" : "b" , "Next" : { "Name" : [ { } , 1.5 ] } } `: {Name: "b"},
	} {
		before := strings.Clone(text)
		if got, err := JSON[named]().Decode([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		if p, err := JSON[*named]().Decode([]byte(text)); err != nil || !reflect.DeepEqual(*p, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, p, err, want)
		}
		if text != before {
			t.Errorf("%s was modified", before)
		}
	}
	if v, err := JSON[hidden]().Decode([]byte(`{"NAME":"b","Name":"c"}`)); err != nil || v.Upper != "b" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := JSON[map[string]any]().Decode([]byte(`{"A":1,"a":2}`)); err != nil || len(v) != 2 {
		t.Errorf("%v, %v", v, err)
	}
	if v, err := JSON[loop]().Decode([]byte(`[[],[[]]]`)); err != nil || len(v) != 2 {
		t.Errorf("%v, %v", v, err)
	}
	JSON[pointer]()
	for _, text := range []string{``, `{`, `{"Name":"a"`, `{"Name":"a","x":tru}`, `{"name":1}`, `{"Name":"a"}}`, `[]`, `{"x":"` + "\x01" + `"}`} {
		if v, err := JSON[named]().Decode([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

// BenchmarkDecode measures the decoding of a Pod into a struct with a few of its fields.
func BenchmarkDecode(b *testing.B) {
	type pod struct {
		Metadata struct {
			Name      string            `json:"name"`
			Namespace string            `json:"namespace"`
			Labels    map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			NodeName   string `json:"nodeName"`
			Containers []struct {
				Name  string `json:"name"`
				Image string `json:"image"`
			} `json:"containers"`
		} `json:"spec"`
		Status struct {
			Phase string `json:"phase"`
		} `json:"status"`
	}
	raw := []byte(benchPod("a", 1))
	codec := JSON[pod]()
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := codec.Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
