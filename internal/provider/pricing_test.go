package provider

import "testing"

func TestListedPrices(t *testing.T) {
	for name, test := range map[string]struct{ pricing, want string }{
		"all of them": {`{"prompt":"0.00000125","completion":"0.00001","request":"0","image":"0","web_search":"0","internal_reasoning":"0.00002",
			"input_cache_read":"0.000000125","input_cache_write":"1.5e-6","audio":"0.000001","audio_output":"0.000002"}`, "1.25,10,0.125,1.5,20,1,2"},
		"fees": {`{"prompt":"0.000005","completion":"0.000025","input_cache_write":"0.00000625","input_cache_write_1h":"0.00001",
			"image_output":"0.00003","request":"0.005","web_search":"0.01"}`, "5,25,,6.25,,,,10,30;call=0.005;search=0.01"},
		"a zero is no price of its own": {`{"prompt":"0.000001","completion":"0.000002","internal_reasoning":"0","input_cache_read":"0"}`, "1,2"},
		"free":                          {`{"prompt":"0","completion":"0","request":"0"}`, "0,0"},
		"it depends":                    {`{"prompt":"-1","completion":"-1"}`, ""},
		"of another unit":               {`{"prompt":0.2,"completion":0.8}`, ""},
		"too much":                      {`{"prompt":"0.2","completion":"0.8"}`, ""},
		"no object":                     {`"free"`, ""},
		"nothing":                       {`null`, ""},
	} {
		models, err := DecodeModels([]byte(`{"data":[{"id":"m","pricing":` + test.pricing + `}]}`))
		if err != nil || len(models) != 1 || models[0].Prices.String() != test.want {
			t.Errorf("%s: got %+v, %v, want %q", name, models, err, test.want)
		}
	}
}
